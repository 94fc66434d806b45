# debian: libpython3-stdlib
import decimal

with decimal.localcontext() as context:
    context.prec = 60
    root = decimal.Decimal(2).sqrt()
    assert str(root) == "1.41421356237309504880168872420969807856967187537694807317668"
    context.traps[decimal.Inexact] = True
    try:
        decimal.Decimal(1) / 3
    except decimal.Inexact:
        pass
    else:
        raise AssertionError("an inexact result was not trapped")
