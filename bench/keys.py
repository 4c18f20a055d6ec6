#!/usr/bin/env python3
"""Keys and bearer tokens for the benchmark, made afresh for each run.

keys.py DIR [COUNT]: for RS256, ES256 and EdDSA a key pair, jwks.json with the
public keys, and COUNT (64) tokens a line in rs256.tokens, es256.tokens,
eddsa.tokens. Needs openssl. The keys are for loopback tests only.
"""
import base64
import json
import os
import re
import subprocess
import sys
import time

ISSUER = "http://127.0.0.1/bench"
AUDIENCE = "bench"


def b64(data):
    if isinstance(data, str):
        data = data.encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def openssl(*args, stdin=None):
    return subprocess.run(["openssl", *args], input=stdin, capture_output=True, check=True).stdout


def der_to_raw(sig):
    """An ECDSA signature as JWS wants it: r and s, 32 bytes each."""
    assert sig[0] == 0x30
    at = 2
    out = b""
    for _ in range(2):
        assert sig[at] == 0x02
        size = sig[at + 1]
        num = sig[at + 2 : at + 2 + size].lstrip(b"\0")
        out += num.rjust(32, b"\0")
        at += 2 + size
    return out


def main():
    where, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 64
    os.makedirs(where, exist_ok=True)
    os.chdir(where)
    openssl("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", "rs256.key.pem")
    openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", "es256.key.pem")
    openssl("genpkey", "-algorithm", "ED25519", "-out", "eddsa.key.pem")
    for alg in ("rs256", "es256", "eddsa"):
        openssl("pkey", "-in", f"{alg}.key.pem", "-pubout", "-out", f"{alg}.pub.pem")
        openssl("pkey", "-in", f"{alg}.key.pem", "-pubout", "-outform", "DER", "-out", f"{alg}.spki.der")

    modulus = openssl("rsa", "-in", "rs256.key.pem", "-noout", "-modulus").decode()
    modulus = bytes.fromhex(re.search(r"Modulus=([0-9A-F]+)", modulus).group(1))
    with open("es256.spki.der", "rb") as f:
        point = f.read()[-64:]
    with open("eddsa.spki.der", "rb") as f:
        ed = f.read()[-32:]
    jwks = {
        "keys": [
            {"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "rs256", "n": b64(modulus), "e": "AQAB"},
            {
                "kty": "EC", "use": "sig", "alg": "ES256", "kid": "es256", "crv": "P-256",
                "x": b64(point[:32]), "y": b64(point[32:]),
            },
            {"kty": "OKP", "use": "sig", "alg": "EdDSA", "kid": "eddsa", "crv": "Ed25519", "x": b64(ed)},
        ]
    }
    with open("jwks.json", "w") as f:
        json.dump(jwks, f)
    for alg, name in (("rs256", "RS256"), ("es256", "ES256")):
        with open(f"{alg}.jwks.json", "w") as f:
            json.dump({"keys": [k for k in jwks["keys"] if k["alg"] == name]}, f)

    now = int(time.time())
    for alg, name in (("rs256", "RS256"), ("es256", "ES256"), ("eddsa", "EdDSA")):
        head = b64(json.dumps({"alg": name, "typ": "JWT", "kid": alg}))
        lines = []
        for i in range(count):
            claims = {
                "iss": ISSUER, "aud": AUDIENCE, "sub": f"client-{i}", "tenant": f"t{i % 8}",
                "client_id": f"client-{i}", "scope": "mcp:tools", "iat": now, "nbf": now, "exp": now + 86400,
                "jti": f"{now}-{i}",
            }
            msg = f"{head}.{b64(json.dumps(claims))}"
            if alg == "eddsa":
                with open("msg", "w") as f:
                    f.write(msg)
                sig = openssl("pkeyutl", "-sign", "-inkey", "eddsa.key.pem", "-rawin", "-in", "msg")
            else:
                sig = openssl("dgst", "-sha256", "-sign", f"{alg}.key.pem", stdin=msg.encode())
                if alg == "es256":
                    sig = der_to_raw(sig)
            lines.append(f"{msg}.{b64(sig)}\n")
        with open(f"{alg}.tokens", "w") as f:
            f.writelines(lines)


main()
