#!/usr/bin/env python3
"""Lints and renders the chart, and holds what comes out against Kubernetes.

    check.py CHART FOLDER

renders every value set of CHART/ci with Helm into FOLDER/<set>/, one YAML file a
manifest, and prints one line of JSON a set:

    {"set": "full", "manifests": 14, "faults": []}

Values that have to be refused follow, each with what was wrong in the answer:

    {"refused": "a misspelt key", "faults": []}

Then `{"reached": 212, "faults": []}`: every key of Toolgate's own configuration, as in
docs/toolgate.example.yaml, that comes out of the chart as it was put in; and
`{"described": 96, "faults": []}`: every value, with its comment and its schema.

Faults are: a schema of three Kubernetes versions that a manifest breaks, a rule of
the restricted profile of Pod Security Standards, a secret in a ConfigMap or an
argument, a selector that fits no pod. Exit code 1 when there is one.
"""
import json
import pathlib
import re
import sys

import helm_python as helm
import kubernetes_validate
import yaml

VERSIONS = ["1.30", "1.33", "1.37"]
# Kinds of projects beside Kubernetes: their schemas are not in the package.
CUSTOM = {"HTTPRoute": ["parentRefs", "rules"], "ServiceMonitor": ["selector", "endpoints"], "PrometheusRule": ["groups"]}
SECRET = re.compile(r"postgres(ql)?://[^ ]*:[^ ]*@|[0-9a-f]{64}|BEGIN [A-Z ]*PRIVATE KEY")


GOOD = {"config": {"server": {"public_url": "https://tools.example.com"}, "tenants": {"acme": {}}}, "keys": {"existingSecret": "k"}, "database": {"existingSecret": "d"}}
# What has to be refused: title, values over GOOD, words of the answer.
REFUSED = [
    ("no public URL", {"config": {"server": {"public_url": ""}}}, "config.server.public_url is missing"),
    ("a public URL that is none", {"config": {"server": {"public_url": "tools.example.com"}}}, "public_url"),
    ("no tenant", {"config": {"server": {"public_url": "https://t.example"}}}, "config.tenants is empty"),
    ("no keys", {"keys": {"existingSecret": ""}}, "openssl rand -hex 32"),
    ("no database", {"database": {"existingSecret": ""}}, "database.existingSecret is missing"),
    ("a misspelt key", {"replicas": 3}, "replicas"),
    ("a misspelt key further down", {"autoscaling": {"enable": True}}, "enable"),
    ("a number that is a word", {"replicaCount": "two"}, "replicaCount"),
    ("a privileged port", {"ports": {"http": 80}}, "ports"),
    ("the chart's own address", {"config": {"server": {"public_url": "https://t.example", "listen": "0.0.0.0:1"}, "tenants": {"acme": {}}}}, "use `ports`"),
    ("a database URL in the configuration", {"config": {"server": {"public_url": "https://t.example"}, "tenants": {"acme": {}}, "database": {"url": "postgres://u:p@h/d"}}}, "use `database.existingSecret`"),
    ("a password in Redis's address", {"config": {"server": {"public_url": "https://t.example"}, "tenants": {"acme": {}}, "redis": {"url": "redis://:p@h"}}}, "config.redis.password_file"),
    ("the audit writer's URL in the configuration", {"config": {"server": {"public_url": "https://t.example"}, "tenants": {"acme": {}}, "database": {"audit": {"writer_url": "postgres://h/d"}}}}, "writer_url_file"),
    ("a route to nowhere", {"httpRoute": {"enabled": True}}, "httpRoute.parentRefs is missing"),
    ("scaling by nothing", {"autoscaling": {"enabled": True, "targetCPUUtilizationPercentage": None}}, "autoscaling has no target"),
    ("a duration that is none", {"config": {"server": {"public_url": "https://t.example", "drain_timeout": "long"}, "tenants": {"acme": {}}}}, "is no duration"),
]


def pods(manifest):
    """The pod specs within a manifest, with the metadata that they get."""
    kind, spec = manifest["kind"], manifest.get("spec", {})
    if kind == "Pod":
        yield manifest["metadata"], spec
    elif kind in ("Deployment", "Job"):
        yield spec["template"]["metadata"], spec["template"]["spec"]
    elif kind == "CronJob":
        template = spec["jobTemplate"]["spec"]["template"]
        yield template["metadata"], template["spec"]


def restricted(pod):
    """What of the restricted profile does not hold."""
    of_pod = pod.get("securityContext", {})
    for key in ("hostNetwork", "hostPID", "hostIPC"):
        if pod.get(key):
            yield f"{key} is set"
    for volume in pod.get("volumes", []):
        kinds = set(volume) - {"name"}
        if not kinds <= {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}:
            yield f"volume {volume['name']} is of kind {kinds}"
    for container in pod.get("containers", []) + pod.get("initContainers", []):
        own, name = container.get("securityContext", {}), container["name"]
        if own.get("privileged") or own.get("allowPrivilegeEscalation") is not False:
            yield f"{name} may gain privileges"
        if own.get("capabilities", {}).get("drop") != ["ALL"] or own.get("capabilities", {}).get("add"):
            yield f"{name} keeps capabilities"
        if own.get("runAsNonRoot", of_pod.get("runAsNonRoot")) is not True:
            yield f"{name} may run as root"
        if 0 in (own.get("runAsUser"), of_pod.get("runAsUser")):
            yield f"{name} runs as root"
        profile = own.get("seccompProfile", of_pod.get("seccompProfile", {})).get("type")
        if profile not in ("RuntimeDefault", "Localhost"):
            yield f"{name} has no seccomp profile"
        if own.get("readOnlyRootFilesystem") is not True:
            yield f"{name} may write to its root"


def mounted(pod):
    """Mounts without a volume, and volumes without a mount."""
    volumes = {volume["name"] for volume in pod.get("volumes", [])}
    used = {mount["name"] for container in pod["containers"] for mount in container.get("volumeMounts", [])}
    for name in sorted(used ^ volumes):
        yield f"volume {name} is not both declared and mounted"


def faults_of(manifests):
    labels = [metadata.get("labels", {}) for manifest in manifests for metadata, _ in pods(manifest)]
    names = [(manifest["kind"], manifest["metadata"]["name"]) for manifest in manifests]
    for double in {name for name in names if names.count(name) > 1}:
        yield f"{double} stands there twice"
    for manifest in manifests:
        kind, name = manifest["kind"], manifest["metadata"]["name"]
        where = f"{kind}/{name}"
        if len(name) > 63:
            yield f"{where}: the name is longer than 63 characters"
        if kind in CUSTOM:
            for key in CUSTOM[kind]:
                if not manifest["spec"].get(key):
                    yield f"{where}: spec.{key} is missing"
        else:
            for version in VERSIONS:
                try:
                    kubernetes_validate.validate(manifest, version, strict=True)
                except Exception as fault:  # noqa: BLE001 - whatever is wrong is a finding
                    yield f"{where}: Kubernetes {version}: {str(fault).splitlines()[0]}"
        for _, pod in pods(manifest):
            for fault in [*restricted(pod), *mounted(pod)]:
                yield f"{where}: {fault}"
            for container in pod["containers"]:
                for text in [*container.get("args", []), *[str(env.get("value", "")) for env in container.get("env", [])]]:
                    if SECRET.search(text):
                        yield f"{where}: a secret among the arguments or the environment"
        if kind == "ConfigMap" and any(SECRET.search(text) for text in manifest["data"].values()):
            yield f"{where}: a secret in a ConfigMap"
        if kind == "Service":
            wanted = manifest["spec"]["selector"].items()
            if not any(wanted <= each.items() for each in labels):
                yield f"{where}: the selector fits no pod"
        if kind in ("NetworkPolicy", "PodDisruptionBudget"):
            wanted = manifest["spec"].get("podSelector", manifest["spec"].get("selector"))["matchLabels"].items()
            if not any(wanted <= each.items() for each in labels):
                yield f"{where}: the selector fits no pod"


def refused(chart):
    for title, values, words in REFUSED:
        try:
            chart.render({**GOOD, **values}, name="toolgate", namespace="tools")
            yield title, ["it was rendered"]
        except helm.HelmError as fault:
            yield title, [] if words in str(fault) else [f"the answer lacks {words!r}: {fault}"]


# What the chart knows better, and what `_helpers.tpl` refuses for it.
OWN = {"server.listen", "server.admin_listen", "keys_file", "database.url_file", "database.direct_url"}


class Plain(yaml.SafeLoader):
    """Reads days as the texts that they are written as."""


Plain.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def leaves(value, path=""):
    """Every scalar and list of a configuration, by its path."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}" if path else key)
    else:
        yield path, value


def reached(chart, chart_folder):
    """Whether every key of the configuration can be set through `config`."""
    example = yaml.load(pathlib.Path(chart_folder, "../../docs/toolgate.example.yaml").read_text(), Plain)
    wanted = {path: value for path, value in leaves(example) if path not in OWN}
    given = json.loads(json.dumps(example))
    for path in OWN:
        *folders, last = path.split(".")
        place = given
        for folder in folders:
            place = place.get(folder, {})
        place.pop(last, None)
    rendered = chart.render({**GOOD, "config": given}, name="toolgate", namespace="tools")
    maps = [yaml.safe_load(text) for name, text in rendered.items() if name.endswith("configmap.yaml")]
    got = dict(leaves(yaml.load(maps[0]["data"]["toolgate.yaml"], Plain)))
    faults = []
    for path, value in wanted.items():
        there = got.get(path)
        fits = set(value) <= set(there or []) if path == "server.allowed_hosts" else there == value
        if not fits and value not in ({}, []):
            faults.append(f"{path}: {value!r} came out as {there!r}")
    return len(wanted), faults


WHOLE = {"config", "resources", "podSecurityContext", "securityContext", "strategy", "behavior", "scaleDown"}


def within_whole(lines, line, indent):
    """Whether a line stands beneath a map of WHOLE."""
    for above in reversed(lines[:lines.index(line)]):
        key = re.match(r"( *)([A-Za-z]+):", above)
        if key and len(key[1]) < len(indent):
            if key[2] in WHOLE:
                return True
            indent = key[1]
    return False


def described(chart_folder):
    """Whether every value has a comment of its own, and the schema knows it."""
    text = pathlib.Path(chart_folder, "values.yaml").read_text()
    schema = json.loads(pathlib.Path(chart_folder, "values.schema.json").read_text())
    values, faults, count = yaml.safe_load(text), [], 0
    for key, value in values.items():
        count += 1
        known = schema["properties"].get(key)
        if known is None:
            faults.append(f"{key} is not in the schema")
            continue
        if not known.get("description") and not known.get("properties"):
            faults.append(f"{key} has no description in the schema")
        for inner in value if isinstance(value, dict) and known.get("additionalProperties") is False else ():
            count += 1
            if inner not in known["properties"]:
                faults.append(f"{key}.{inner} is not in the schema")
    lines = text.splitlines()
    for before, line in zip(lines, lines[1:]):
        # Of a map that is handed through whole, the keys are those of Kubernetes.
        key = re.match(r"( *)([A-Za-z]+):", line)
        if key and not before.strip().startswith("#") and not within_whole(lines, line, key[1]):
            faults.append(f"{line.strip()} has no comment")
    for key in schema["properties"]:
        if key not in values and key != "global":
            faults.append(f"{key} is in the schema and not among the values")
    return count, faults


def main():
    chart_folder, out = sys.argv[1:]
    ended = 0
    with helm.Chart.load(chart_folder) as chart:
        for file in sorted(pathlib.Path(chart_folder, "ci").glob("*.yaml")):
            values = yaml.safe_load(file.read_text())
            linted = helm.lint(chart_folder, values)
            faults = list(linted["errors"]) + [m["error"] for m in linted["messages"] if m["severity"] > 1]
            rendered = chart.render(values, name="toolgate", namespace="tools")
            manifests = []
            for path, text in rendered.items():
                if path.endswith(".txt"):
                    if SECRET.search(text):
                        faults.append(f"{path}: a secret in the notes")
                    continue
                manifests += [document for document in yaml.safe_load_all(text) if document]
            faults += faults_of(manifests)
            folder = pathlib.Path(out, file.stem)
            folder.mkdir(parents=True, exist_ok=True)
            for manifest in manifests:
                name = f"{manifest['kind']}-{manifest['metadata']['name']}.json".lower()
                (folder / name).write_text(json.dumps(manifest, indent=1))
            print(json.dumps({"set": file.stem, "manifests": len(manifests), "faults": faults}))
            ended |= bool(faults)
        for title, (count, faults) in (("reached", reached(chart, chart_folder)), ("described", described(chart_folder))):
            print(json.dumps({title: count, "faults": faults}))
            ended |= bool(faults)
        for title, faults in refused(chart):
            print(json.dumps({"refused": title, "faults": faults}))
            ended |= bool(faults)
    return ended


if __name__ == "__main__":
    sys.exit(main())
