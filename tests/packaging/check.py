#!/usr/bin/env python3
"""Holds what the project is packaged as against rules that need no container engine.

    check.py PROJECT [PROMTOOL]

prints one line of JSON a subject, with what is wrong with it; exit code 1 when
something is:

    {"subject": "docker-compose.yml", "faults": []}
"""
import json
import pathlib
import re
import subprocess
import sys

import jsonschema
import yaml

SECRET = re.compile(r"postgres(ql)?://[^ ]*:[^ @]+@|[0-9a-f]{32,}|BEGIN [A-Z ]*PRIVATE KEY", re.I)
LABELS = ["title", "description", "licenses", "source", "documentation", "version", "revision", "created", "base.name"]
# What needs root at its start, and why: `init` gives each secret to its reader.
MAY = {"init": {"CHOWN", "DAC_OVERRIDE", "FOWNER"}}
# Nothing in their image could ask.
UNASKED = {"init", "migrate", "maintain", "collector"}


def compose(project):
    document = yaml.safe_load((project / "docker-compose.yml").read_text())
    schema = json.loads((project / "tests/packaging/compose-spec.json").read_text())
    for fault in jsonschema.Draft7Validator(schema).iter_errors(document):
        yield f"{'/'.join(map(str, fault.absolute_path))}: {fault.message[:200]}"
    services, volumes = document["services"], document["volumes"]
    for name, service in services.items():
        for fault in [*hardened(name, service), *placed(project, service, volumes, services)]:
            yield f"{name}: {fault}"
    mounted = {volume.split(":")[0] for service in services.values() for volume in service.get("volumes", [])}
    for volume in volumes.keys() - mounted:
        yield f"volume {volume} is mounted by nobody"


def hardened(name, service):
    """Least privilege, and an end to what one service can take."""
    if service.get("read_only") is not True:
        yield "its root can be written"
    if service.get("cap_drop") != ["ALL"]:
        yield "it keeps capabilities"
    if not set(service.get("cap_add", [])) <= MAY.get(name, set()):
        yield f"it is given {service['cap_add']}"
    if "no-new-privileges:true" not in service.get("security_opt", []):
        yield "it may gain privileges"
    if service.get("privileged") or service.get("network_mode") == "host" or service.get("pid"):
        yield "it is not contained"
    if name not in MAY and not re.fullmatch(r"[1-9]\d*:[1-9]\d*", str(service.get("user", ""))):
        yield "its user is no number above 0"
    for limit in ("mem_limit", "pids_limit"):
        if limit not in service:
            yield f"{limit} is missing"
    for port in service.get("ports", []):
        if not str(port).startswith("127.0.0.1:"):
            yield f"port {port} is open to other machines"
    if not re.search(r":(v?\d+\.\d|17-|local$)", service["image"]):
        yield f"image {service['image']} names no release"
    if "healthcheck" not in service and name not in UNASKED and "build" not in service:
        yield "nothing asks whether it is well"
    for text in [*map(str, service.get("command", [])), *map(str, (service.get("environment") or {}).values())]:
        if SECRET.search(text):
            yield "a secret among the arguments or the environment"


def placed(project, service, volumes, services):
    """Files that are mounted are there, read-only; what is referred to is defined."""
    for volume in service.get("volumes", []):
        source, target, *mode = volume.split(":")
        if source.startswith("./"):
            if not (project / source).is_file():
                yield f"{source} does not exist"
            if mode != ["ro"]:
                yield f"{source} can be written"
        elif source not in volumes:
            yield f"volume {source} is not declared"
        elif source.startswith("secrets-") and mode != ["ro"] and not target.startswith("/secrets/"):
            yield f"{source} can be written"
    for other in service.get("depends_on", {}):
        if other not in services:
            yield f"depends on {other}, which is not there"
    build = service.get("build")
    if build and not (project / build["context"] / "Dockerfile").is_file():
        yield f"no Dockerfile in {build['context']}"


def dockerfile(project):
    text = (project / "Dockerfile").read_text()
    stages = re.findall(r"^FROM (\S+)(?: AS (\S+))?$", text, re.M)
    last = text[text.rindex("\nFROM "):]
    for label in LABELS:
        if f"org.opencontainers.image.{label}=" not in last:
            yield f"label {label} is missing"
    if not re.search(r"^USER [1-9]\d*:[1-9]\d*$", last, re.M):
        yield "the user is no number above 0"
    if "\nRUN " in last:
        yield "the last stage runs something: it has no shell"
    if not re.search(r'^ENTRYPOINT \["/usr/bin/toolgate"\]$', last, re.M):
        yield "the entry point is not the program"
    built = {name for _, name in stages}
    for base, _ in stages:
        if base not in built | {"scratch"} and (":" not in base or base.endswith(":latest")):
            yield f"{base} names no release"
    rust = re.search(r'^rust-version = "(.+)"$', (project / "Cargo.toml").read_text(), re.M)[1]
    if f"FROM rust:{rust}-" not in text:
        yield f"it is not built with Rust {rust}, as Cargo.toml says"
    for source in re.findall(r"^COPY (?!--from)(.+) \S+$", text, re.M):
        for path in source.split():
            if not (project / path).exists():
                yield f"{path} does not exist"
            if path.split("/")[0] not in " ".join(ignored(project)) and path not in ignored(project):
                yield f"{path} is kept from the builder by .dockerignore"


def ignored(project):
    lines = (project / ".dockerignore").read_text().splitlines()
    return [line[1:] for line in lines if line.startswith("!")]


def dockerignore(project):
    lines = [line for line in (project / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    if lines[0] != "*":
        yield "it does not begin by keeping everything out"
    for path in ignored(project):
        if not (project / path).exists():
            yield f"{path} does not exist"


def collector(project):
    """Pipelines are made of what is defined, and all that is defined is in one."""
    config = yaml.safe_load((project / "deploy/compose/collector.yaml").read_text())
    for kind in ("receivers", "processors", "exporters"):
        used = {part for pipeline in config["service"]["pipelines"].values() for part in pipeline[kind]}
        for part in used ^ set(config[kind]):
            yield f"{kind}: {part} is not both defined and used"
    for part in set(config["service"]["extensions"]) ^ set(config["extensions"]):
        yield f"extensions: {part} is not both defined and used"
    if set(config["service"]["pipelines"]) != {"traces", "metrics", "logs"}:
        yield "not all three signals have a pipeline"
    for pipeline in config["service"]["pipelines"].values():
        if pipeline["processors"][0] != "memory_limiter":
            yield "the memory limiter is not first"


def prometheus(project, promtool):
    made = subprocess.run([sys.executable, project / "deploy/compose/alerts.py"], capture_output=True, text=True, check=True)
    if made.stdout != (project / "deploy/compose/alerts.yml").read_text():
        yield "run deploy/compose/alerts.py > deploy/compose/alerts.yml"
    for args in (["check", "rules", "deploy/compose/alerts.yml"], ["check", "config", "--syntax-only", "deploy/compose/prometheus.yml"],
                 ["test", "rules", "tests/packaging/alerts_test.yml"]):
        said = subprocess.run([promtool, *args], cwd=project, capture_output=True, text=True, check=False)
        if said.returncode or "0 rules found" in said.stdout:
            yield f"promtool {' '.join(args)}: {said.stdout}{said.stderr}"


def grafana(project):
    for name in ("datasource", "dashboards"):
        document = yaml.safe_load((project / f"deploy/compose/grafana/{name}.yaml").read_text())
        if document["apiVersion"] != 1:
            yield f"{name}.yaml: apiVersion"
    uid = yaml.safe_load((project / "deploy/compose/grafana/datasource.yaml").read_text())["datasources"][0]["type"]
    dashboard = json.loads((project / "helm/toolgate/files/dashboard.json").read_text())
    if dashboard["templating"]["list"][0]["query"] != uid:
        yield "the dashboard asks for another kind of data source"


def main():
    project = pathlib.Path(sys.argv[1]).resolve()
    subjects = {
        "docker-compose.yml": compose(project),
        "Dockerfile": dockerfile(project),
        ".dockerignore": dockerignore(project),
        "collector.yaml": collector(project),
        "grafana": grafana(project),
    }
    if len(sys.argv) > 2:
        subjects["prometheus"] = prometheus(project, sys.argv[2])
    ended = 0
    for subject, found in subjects.items():
        faults = list(found)
        print(json.dumps({"subject": subject, "faults": faults}))
        ended |= bool(faults)
    return ended


if __name__ == "__main__":
    sys.exit(main())
