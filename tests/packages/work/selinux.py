# debian: python3-selinux
import selinux

assert selinux.is_selinux_enabled() in (0, 1)
assert selinux.security_check_context_raw is not None
context = selinux.context_new("user_u:role_r:type_t:s0")
assert selinux.context_type_get(context) == "type_t"
selinux.context_type_set(context, "other_t")
assert selinux.context_str(context) == "user_u:role_r:other_t:s0"
selinux.context_free(context)
