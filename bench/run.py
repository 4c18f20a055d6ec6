#!/usr/bin/env python3
"""Every peer side by side, in one run, interleaved. See README.md.

Environment: BIN (harness binaries), ROUNDS, SECS, WARMUP, SLOW_ROUNDS and
SLOW_SECS (for peers that say slow=yes), PEERS (names, in order), CASES_SESSION
and CASES_STATELESS (tool:size:connections, ..., empty for none), ALG (rs256 or
es256), OUT (folder for results.jsonl and table.md), LOAD_CORE, PEER_CORE,
UPSTREAM_SSE=1 (the upstream answers as SSE).
"""
import json
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
ENV = os.environ
BIN = ENV.get("BIN", f"{HERE}/target/release")
ROUNDS = int(ENV.get("ROUNDS", "3"))
SECS = int(ENV.get("SECS", "4"))
WARMUP = int(ENV.get("WARMUP", "1"))
ALG = ENV.get("ALG", "rs256")
OUT = ENV.get("OUT", os.path.join(tempfile.gettempdir(), "mcpbench-out"))
KEYS = f"{OUT}/keys"
LOAD_CORE, PEER_CORE = ENV.get("LOAD_CORE", "0"), ENV.get("PEER_CORE", "1")
SLOW_SECS = int(ENV.get("SLOW_SECS", "10"))
SLOW_ROUNDS = int(ENV.get("SLOW_ROUNDS", "1"))


def cases(text):
    return [tuple(c.split(":")) for c in text.split(",") if c]


# Which cases each lifecycle gets.
CASES = {
    "session": cases(ENV.get("CASES_SESSION", "echo:64:1,echo:64:16,echo:64:64,big:100:16")),
    "stateless": cases(ENV.get("CASES_STATELESS", "echo:64:1,echo:64:16,echo:64:64,big:100:16")),
}
MODES = [m for m in CASES if CASES[m]]
ORDER = [
    "upstream", "floor-pass", "floor-jwt", "floor-jwt-cached", "floor-full", "floor-audit", "toolgate", "rmcp",
    "rmcp-json", "envoy", "agentgateway", "fastmcp",
]
PEERS = ENV.get("PEERS", ",".join(ORDER)).split(",")
UPSTREAM_PORT = 19100
started = []


def log(text):
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def pin(core):
    return ["taskset", "-c", core]


def spawn(args, env, out):
    """A child in a process group of its own, so that it and its children can be ended."""
    proc = subprocess.Popen(args, env=env, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                            process_group=0)
    started.append(proc)
    return proc


def end(proc):
    """Ends one group that this run started, by its id."""
    if proc in started:
        started.remove(proc)
    for sig, wait in ((signal.SIGTERM, 3), (signal.SIGKILL, 3)):
        try:
            os.killpg(proc.pid, sig)
        except ProcessLookupError:
            break
        try:
            proc.wait(wait)
        except subprocess.TimeoutExpired:
            continue
        time.sleep(0.2)


def free(port):
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return s.connect_ex(("127.0.0.1", port)) != 0


def peer_env(name, port):
    scratch = f"{OUT}/scratch/{name}-{port}"
    os.makedirs(scratch, exist_ok=True)
    return dict(ENV, PORT=str(port), UPSTREAM_PORT=str(UPSTREAM_PORT), KEYS=KEYS, ALG=ALG, SCRATCH=scratch, BIN=BIN,
                UPSTREAM_CORE=LOAD_CORE)


def about(name):
    text = subprocess.run([f"{HERE}/peers/{name}.sh", "about"], env=peer_env(name, 1), capture_output=True, text=True,
                          timeout=60).stdout
    info = {}
    for line in text.splitlines():
        key, _, value = line.partition("=")
        if key == "available" and " why=" in value:
            value, _, info["why"] = value.partition(" why=")
        info[key] = value
    return info


def loadgen(*args, timeout=240):
    run = subprocess.run([*pin(LOAD_CORE), f"{BIN}/loadgen", *map(str, args)], capture_output=True, text=True,
                         timeout=timeout)
    try:
        return json.loads(run.stdout.strip().splitlines()[-1])
    except (IndexError, json.JSONDecodeError):
        return {"ok": False, "error": (run.stderr or run.stdout)[-300:]}


def upstream_seen():
    with urllib.request.urlopen(f"http://127.0.0.1:{UPSTREAM_PORT}/stats", timeout=10) as res:
        return json.load(res)


def tokens_of(info):
    return ["--tokens", f"{KEYS}/{info.get('tokens', ALG + '.tokens')}"] if info.get("auth") == "yes" else []


def forged_of(info):
    """The first token with ten characters of its signature changed."""
    with open(tokens_of(info)[1]) as f:
        token = f.readline().strip()
    at = token.rindex(".") + 20
    swapped = "".join("B" if c == "A" else "A" for c in token[at : at + 10])
    where = f"{KEYS}/forged.tokens"
    with open(where, "w") as f:
        f.write(token[:at] + swapped + token[at + 10 :] + "\n")
    return ["--tokens", where]


def one(name, info, port, rnd, sink):
    """Starts one peer, measures every case, ends it."""
    env = peer_env(name, port)
    path = info.get("path", "/mcp")
    with open(f"{HERE}/peers/{name}.sh") as f:
        script = f.read()
    if "\nprepare)" in script:
        prepared = subprocess.run([f"{HERE}/peers/{name}.sh", "prepare"], env=env, capture_output=True, text=True,
                                  timeout=60)
        if prepared.returncode:
            log(f"{name}: prepare failed: {prepared.stderr.strip()[-400:]}")
            sink({"peer": name, "round": rnd, "ok": False, "error": f"prepare: {prepared.stderr.strip()[-300:]}"})
            return
    with open(f"{env['SCRATCH']}/log", "a") as out:
        t0 = time.monotonic()
        proc = spawn([*pin(PEER_CORE), f"{HERE}/peers/{name}.sh", "start"], env, out)
        try:
            if "\nsetup)" in script:
                setup = subprocess.run([*pin(LOAD_CORE), f"{HERE}/peers/{name}.sh", "setup"], env=env,
                                       capture_output=True, text=True, timeout=200)
                for line in setup.stdout.splitlines():
                    if line.startswith("path="):
                        path = line[5:]
                if setup.returncode:
                    log(f"{name}: setup failed: {setup.stderr.strip()[-400:]}")
                    sink({"peer": name, "round": rnd, "ok": False, "error": f"setup: {setup.stderr.strip()[-300:]}"})
                    return
            url = f"http://127.0.0.1:{port}{path}"
            modes = [m for m in info.get("modes", "session").split(",") if m in MODES]
            up = loadgen("--url", url, "--mode", info.get("modes", "session").split(",")[0], "--probe",
                         "--deadline-ms", 60000, *tokens_of(info))
            ready = time.monotonic() - t0
            if not up.get("ok"):
                log(f"{name}: no call succeeded: {up.get('error')}")
                sink({"peer": name, "round": rnd, "ok": False, "error": up.get("error")})
                return
            if info.get("auth") == "yes":
                # A peer that is said to check tokens has to refuse a call without one, and one
                # whose signature was changed.
                bare = loadgen("--url", url, "--mode", "session", "--probe", "--deadline-ms", 0)
                forged = loadgen("--url", url, "--mode", "session", "--probe", "--deadline-ms", 0, *forged_of(info))
                if bare.get("ok") or forged.get("ok"):
                    log(f"{name}: ANSWERED WITHOUT A GOOD TOKEN")
                sink({"peer": name, "round": rnd, "refuses_no_token": not bare.get("ok"), "how": bare.get("error"),
                      "refuses_forged": not forged.get("ok"), "forged_how": forged.get("error")})
            sink({"peer": name, "round": rnd, "start_s": ready})
            secs = SLOW_SECS if info.get("slow") == "yes" else SECS
            for mode in modes:
                for tool, size, conns in CASES[mode]:
                    before = upstream_seen()
                    res = loadgen("--url", url, "--mode", mode, "--tool", tool, "--size", size, "--conns", conns,
                                  "--secs", secs, "--warmup", WARMUP, "--watch-pid", proc.pid, "--watch-skip",
                                  "-" if name == "upstream" else "upstream",
                                  *tokens_of(info))
                    after = upstream_seen()
                    seen = {k: after[k] - before[k] for k in after if after[k] != before[k]}
                    sink({"peer": name, "round": rnd, "upstream": seen, "mode": mode, "case": f"{tool}:{size}:{conns}", **res})
                    log(f"{name} r{rnd} {mode} {tool}:{size}:{conns} rps={res.get('rps', 0):.0f} "
                        f"p50={res.get('p50_ms', 0):.2f} p99={res.get('p99_ms', 0):.2f} failed={res.get('failed')} "
                        f"wrong={res.get('wrong')} cpu={res.get('cpu_s', 0):.2f} {res.get('error', '')} "
                        f"{res.get('errors') or ''}")
        finally:
            end(proc)


def table(rows, infos):
    def med(values):
        return statistics.median(values) if values else float("nan")

    lines = []
    for mode in MODES:
        for tool, size, conns in CASES[mode]:
            case = f"{tool}:{size}:{conns}"
            lines += [f"\n### {case} (tool:size:connections), {mode}\n",
                      "| peer | req/s | p50 ms | p95 ms | p99 ms | CPU s per 1,000 | peer core busy | peak MiB | failed | wrong | runs |",
                      "|---|---|---|---|---|---|---|---|---|---|---|"]
            for name in PEERS:
                got = [r for r in rows if r["peer"] == name and r.get("mode") == mode and r.get("case") == case]
                good = [r for r in got if r.get("ok")]
                if not got:
                    continue
                label = infos[name].get("label", name)
                if not good:
                    why = got[0].get("error") or str(got[0].get("errors"))
                    lines.append(f"| {label} | no call succeeded: {why[:80]} | | | | | | | | | {len(got)} |")
                    continue
                per_k = med([r["cpu_s"] / r["n"] * 1000 for r in good])
                busy = med([r["cpu_s"] / r["cpu_wall"] for r in good])
                cells = [f"{med([r['rps'] for r in good]):,.0f}"]
                cells += [f"{med([r[k] for r in good]):.2f}" for k in ("p50_ms", "p95_ms", "p99_ms")]
                cells += [f"{per_k:.4f}", f"{busy:.0%}", f"{max(r['rss_mib'] for r in good):.0f}",
                          str(sum(r["failed"] for r in good)), str(sum(r["wrong"] for r in good)), str(len(good))]
                lines.append(f"| {label} | " + " | ".join(cells) + " |")
    lines += ["\n### Start to first successful tools/call\n", "| peer | seconds | version |", "|---|---|---|"]
    for name in PEERS:
        starts = [r["start_s"] for r in rows if r["peer"] == name and "start_s" in r]
        if starts:
            lines.append(f"| {infos[name].get('label', name)} | {med(starts):.2f} | {infos[name].get('version')} |")
    lines += ["\n### What the upstream got, per tools/call\n", "| peer | lifecycle | messages per call |", "|---|---|---|"]
    for name in PEERS:
        for mode in MODES:
            total = {}
            for r in rows:
                if r["peer"] == name and r.get("mode") == mode:
                    for k, v in r.get("upstream", {}).items():
                        total[k] = total.get(k, 0) + v
            calls = total.get("tools/call", 0)
            if calls:
                per = ", ".join(f"{k} {v / calls:.2f}" for k, v in sorted(total.items()) if v / calls >= 0.005)
                lines.append(f"| {infos[name].get('label', name)} | {mode} | {per} |")
    lines += ["\n### Calls without a good token\n", "| peer | no token | changed signature |", "|---|---|---|"]
    for name in PEERS:
        got = [r for r in rows if r["peer"] == name and "refuses_no_token" in r]
        if got:
            verdict = lambda k: "refused" if all(r[k] for r in got) else "ANSWERED"
            lines.append(f"| {infos[name].get('label', name)} | {verdict('refuses_no_token')} | {verdict('refuses_forged')} |")
    missing = [n for n in PEERS if infos[n].get("available") != "yes"]
    for name in missing:
        lines.append(f"\nNot run: {name} ({infos[name].get('why', 'not available')}).")
    return "\n".join(lines) + "\n"


def main():
    os.makedirs(f"{OUT}/scratch", exist_ok=True)
    subprocess.run([sys.executable, f"{HERE}/keys.py", KEYS, "64"], check=True)
    infos = {name: about(name) for name in PEERS}
    ready = [n for n in PEERS if infos[n].get("available") == "yes"]
    rows = []
    results = open(f"{OUT}/results.jsonl", "w")

    def sink(row):
        rows.append(row)
        results.write(json.dumps(row) + "\n")
        results.flush()

    if not free(UPSTREAM_PORT):
        sys.exit(f"port {UPSTREAM_PORT} is taken")
    args = ["--sse"] if ENV.get("UPSTREAM_SSE") == "1" else []
    upstream = spawn([*pin(LOAD_CORE), f"{BIN}/upstream", "--port", str(UPSTREAM_PORT), *args], dict(ENV),
                     subprocess.DEVNULL)
    try:
        probe = loadgen("--url", f"http://127.0.0.1:{UPSTREAM_PORT}/mcp", "--probe", "--deadline-ms", 5000)
        if not probe.get("ok"):
            sys.exit(f"the upstream does not answer: {probe}")
        for rnd in range(1, ROUNDS + 1):
            # Another order each round, so that no peer always follows the same one.
            order = ready[rnd - 1:] + ready[:rnd - 1]
            for name in order:
                if infos[name].get("slow") == "yes" and rnd > SLOW_ROUNDS:
                    continue
                port = 19200 + 10 * ready.index(name)
                if not free(port):
                    sink({"peer": name, "round": rnd, "ok": False, "error": f"port {port} is taken"})
                    continue
                try:
                    one(name, infos[name], port, rnd, sink)
                except (subprocess.TimeoutExpired, OSError) as e:
                    sink({"peer": name, "round": rnd, "ok": False, "error": str(e)})
    finally:
        for proc in list(started):
            end(proc)
        text = table(rows, infos)
        with open(f"{OUT}/table.md", "w") as f:
            f.write(text)
        print(text)


main()
