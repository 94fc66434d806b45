# debian: python3-yaml
# pypi: PyYAML
import yaml

text = "a: [1, 2.5, x]\nb: {c: null, d: 2001-01-01}\n"
assert yaml.load(text, yaml.CSafeLoader) == yaml.safe_load(text)
assert yaml.load(yaml.dump({"k": [1, "z"]}, Dumper=yaml.CSafeDumper), yaml.CSafeLoader) == {"k": [1, "z"]}
try:
    yaml.load("a: [", yaml.CSafeLoader)
except yaml.YAMLError:
    pass
else:
    raise AssertionError("an open list was accepted")
