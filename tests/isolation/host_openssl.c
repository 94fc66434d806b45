/* A host that has OpenSSL linked in and exports it: contexts of CPython use libssl and libcrypto.
 * Built as a program, or with -DIN_NODE as an addon, which does the work when node loads it.
 * HOST_OPENSSL says "own": each context has its own OpenSSL and no reference leads to the host's;
 * or "host": a rule shares the libraries, and references that the host captures are counted.  It
 * ends with status 0, and prints how many. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <extisolate/python.h>

/* A handshake in memory, of a server without a certificate, and digests of known text. */
static const char work[] =
    "import hashlib, hmac, ssl, _hashlib, _ssl\n"
    "assert hashlib.new('sha256', b'abc').hexdigest() == (\n"
    "    'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad')\n"
    "assert _hashlib.openssl_sha1(b'abc').hexdigest() == (\n"
    "    'a9993e364706816aba3e25717850c26c9cd0d89d')\n"
    "assert hmac.new(b'key', b'text', 'md5').hexdigest() == 'd0ca6177c61c975fd2f8c07d8c6528c6'\n"
    "assert hashlib.pbkdf2_hmac('sha256', b'password', b'salt', 1).hex() == (\n"
    "    '120fb6cffcf8b32c43e7225256c4f837a86548c92ccc35480805987cb70be17b')\n"
    "def side(protocol):\n"
    "    c = ssl.SSLContext(protocol)\n"
    "    c.check_hostname, c.verify_mode = False, ssl.CERT_NONE\n"
    "    c.maximum_version = ssl.TLSVersion.TLSv1_2\n"
    "    c.set_ciphers('AECDH-AES256-SHA:@SECLEVEL=0')\n"
    "    return c\n"
    "a, b = ssl.MemoryBIO(), ssl.MemoryBIO()\n"
    "client = side(ssl.PROTOCOL_TLS_CLIENT).wrap_bio(a, b)\n"
    "server = side(ssl.PROTOCOL_TLS_SERVER).wrap_bio(b, a, server_side=True)\n"
    "pending = [client, server]\n"
    "for turn in range(20):\n"
    "    for s in list(pending):\n"
    "        try:\n"
    "            s.do_handshake()\n"
    "            pending.remove(s)\n"
    "        except ssl.SSLWantReadError:\n"
    "            pass\n"
    "assert not pending\n"
    "client.write(b'hello')\n"
    "assert server.read() == b'hello'\n"
    "assert client.cipher()[0] == 'AECDH-AES256-SHA'\n";

static int failed(const struct exti_error *err)
{
    fprintf(stderr, "%s: %s: %s\n", extipy_code_name(err->code), err->file, err->message);
    return 1;
}

static int complain(const char *what)
{
    fprintf(stderr, "%s\n", what);
    return 1;
}

static int print_finding(void *user, const struct exti_error *finding)
{
    const int *shown = user;

    if (*shown || finding->code != EXTI_E_CAPTURED)
        fprintf(stderr, "%s: %s: %s\n", exti_code_name(finding->code), finding->file,
                finding->message);
    return 0;
}

static int prove(struct extipy_ctx *c, int own, size_t *captured)
{
    struct exti_proof proof = {.size = sizeof proof};
    struct exti_error err;
    int rc;

    if (extipy_enter(c, &err))
        return failed(&err);
    rc = exti_ctx_prove(extipy_loader(c), print_finding, &own, &proof, &err);
    extipy_leave(c, NULL);
    if (rc)
        return failed(&err);
    *captured = proof.captured;
    if (proof.leaks)
        return complain("there are leaks");
    if (own ? proof.captured != 0 : proof.captured < 10)
        return complain(own ? "references were captured" : "no reference was captured");
    return 0;
}

/* With OpenSSL of its own a context has the version of the system's library, whatever the host's
 * is. */
static int check_version(struct extipy_ctx *c)
{
    const char *want = getenv("HOST_OPENSSL_VERSION");
    char code[256];
    struct exti_error err;

    snprintf(code, sizeof code,
             "import ssl\nassert ssl.OPENSSL_VERSION == '%s', ssl.OPENSSL_VERSION",
             want ? want : "");
    return want && extipy_exec(c, code, NULL, &err) ? failed(&err) : 0;
}

static int run_context(struct extipy_python *python, int own, size_t *captured)
{
    const struct exti_rule rules[] = {{"libssl.so.*", 1}, {"libcrypto.so.*", 1}};
    struct extipy_opts opts = {.size = sizeof opts, .rules = rules, .rule_count = own ? 0 : 2};
    struct extipy_ctx *c;
    struct exti_error err;
    struct extipy_closed closed = {.size = sizeof closed};

    if (extipy_open(&c, python, &opts, &err))
        return failed(&err);
    /* Shared, OpenSSL may be a mixture of two versions, which need not work. */
    if (extipy_exec(c, own ? work : "import _ssl, _hashlib", NULL, &err))
        return failed(&err);
    if (prove(c, own, captured) || (own && check_version(c)))
        return 1;
    if (extipy_close(c, print_finding, &own, &closed, &err))
        return failed(&err);
    return closed.mapped ? complain("copies stay mapped") : 0;
}

static int run_host(void)
{
    const char *how = getenv("HOST_OPENSSL");
    const int own = how && strcmp(how, "own") == 0;
    struct extipy_python *python;
    struct exti_error err;
    size_t captured = 0;
    int rc = 0;

    if (!dlsym(RTLD_DEFAULT, "EVP_DigestInit_ex") || !dlsym(RTLD_DEFAULT, "SSL_new"))
        return complain("the host exports no OpenSSL");
    if (extipy_find(&python, NULL, &err))
        return failed(&err);
    for (int i = 0; i < 2 && !rc; i++)
        rc = run_context(python, own, &captured);
    extipy_python_free(python);
    printf("captured %zu\n", captured);
    return rc;
}

#ifdef IN_NODE
/* node calls it once the library is open; what it gives and gets is not needed. */
void *napi_register_module_v1(void *env, void *exports);
__attribute__((visibility("default"))) void *napi_register_module_v1(void *env, void *exports)
{
    const int status = run_host();

    (void)env;
    (void)exports;
    fflush(NULL);
    _exit(status);
}
#else
/* The host uses its own, too. */
extern unsigned char *SHA256(const unsigned char *data, size_t size, unsigned char *out);

static int digest_is_right(void)
{
    unsigned char out[32];

    SHA256((const unsigned char *)"abc", 3, out);
    return out[0] == 0xba && out[31] == 0xad;
}

int main(void)
{
    if (!digest_is_right())
        return complain("the host's OpenSSL is wrong before");
    if (run_host())
        return 1;
    return digest_is_right() ? 0 : complain("the host's OpenSSL is wrong afterwards");
}
#endif
