#!/usr/bin/env python3
"""The suite's last step: no secret of any test stands in anything that the program printed.

    secrets.py FOLDER

FOLDER is what tests/it/support/kept.rs leaves behind: `*.log`, what every server of the
suite printed, at debug or below, and `*.secrets`, the secrets that the tests made or were
given (kind, tab, text). They are searched for as they are, percent-encoded, in hexadecimal,
and in base64 wherever in a longer text they begin. Exit code 1 when there is one, or
nothing to search.
"""
import base64
import pathlib
import re
import subprocess
import sys
import tempfile
import urllib.parse

# Of long texts a piece from the middle and the end: what begins them is no secret.
PIECE = 40


def pieces(secret):
    if len(secret) <= 64:
        return [secret]
    middle = len(secret) // 2
    return [secret[middle:middle + PIECE], secret[-PIECE:]]


def forms(secret):
    """Everything that would give it away."""
    for piece in pieces(secret):
        yield piece
        yield urllib.parse.quote(piece, safe="")
        yield urllib.parse.quote_plus(piece, safe="")
    tail = pieces(secret)[-1].encode()
    yield tail.hex()
    for before in range(3):
        # Characters that depend on what stands around it are left off.
        encoded = base64.b64encode(b"x" * before + tail).decode().rstrip("=")
        start, end = (0, 2, 3)[before], len(encoded) - (0, 1, 1)[(before + len(tail)) % 3]
        inner = encoded[start:end]
        yield inner
        yield inner.translate(str.maketrans("+/", "-_"))


def check_ourselves():
    """A search that cannot find is no evidence."""
    for secret in ("correct horse", "s\u00e9cret/at:idp", "0123456789abcdef" * 8):
        for around in ("", "u:", "ab:", "abc:"):
            text = (around + secret + "!").encode()
            for said in (text.decode(), base64.b64encode(text).decode(), base64.urlsafe_b64encode(text).decode(),
                         text.hex(), urllib.parse.quote_plus(text)):
                assert any(form in said for form in forms(secret)), (secret, said)


def main():
    check_ourselves()
    folder = pathlib.Path(sys.argv[1])
    logs, kinds = sorted(folder.glob("*.log")), {}
    for file in folder.glob("*.secrets"):
        for line in file.read_text().splitlines():
            kind, secret = line.split("\t", 1)
            kinds.update((form, kind) for form in forms(secret))
    if not logs or not kinds:
        print(f"nothing to search in {folder}: run the tests first")
        return 1
    with tempfile.NamedTemporaryFile("w", suffix=".forms") as wanted:
        wanted.write("\n".join(kinds) + "\n")
        wanted.flush()
        command = ["grep", "--fixed-strings", "--only-matching", "--with-filename", "--line-number", "--text", f"--file={wanted.name}"]
        found = []
        for start in range(0, len(logs), 500):
            said = subprocess.run([*command, *logs[start:start + 500]], capture_output=True, text=True, env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"}, check=False)
            if said.returncode > 1:
                raise SystemExit(said.stderr)
            found += said.stdout.splitlines()
    size = sum(file.stat().st_size for file in logs) / 1e6
    for line in found[:40]:
        place, form = re.match(r"(.*?:\d+):(.*)", line).groups()
        print(f"{place}: a {kinds.get(form, 'secret')}: {form[:6]}…")
    print(f"{len(kinds)} forms of secrets, {len(logs)} servers, {size:.0f} MB of output: found {len(found)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
