# debian: python3-ldap
import ldap
import ldap.dn
import ldap.filter

assert ldap.dn.str2dn("cn=a\\,b,dc=x")[0][0][:2] == ("cn", "a,b")
assert ldap.filter.filter_format("(cn=%s)", ["a*"]) == "(cn=a\\2a)"
connection = ldap.initialize("ldap://127.0.0.1:1")
connection.set_option(ldap.OPT_NETWORK_TIMEOUT, 30)
try:
    connection.simple_bind_s()
except ldap.SERVER_DOWN:
    pass
else:
    raise AssertionError("bound to nothing")
