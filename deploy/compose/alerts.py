#!/usr/bin/env python3
"""The chart's alerts as a plain rule file: prints deploy/compose/alerts.yml.

    deploy/compose/alerts.py > deploy/compose/alerts.yml
"""
import json
import pathlib

import yaml

root = pathlib.Path(__file__).resolve().parents[2]
rules = yaml.safe_load((root / "helm/toolgate/files/alerts.yaml").read_text())["rules"]
print("# Made by alerts.py of helm/toolgate/files/alerts.yaml.\ngroups:\n  - name: toolgate\n    rules:")
for rule in rules:
    expr = rule["expr"].strip().replace("$job", 'job="toolgate"')
    print(f"      - alert: {rule['alert']}")
    print(f"        expr: {json.dumps(expr)}")
    print(f"        for: {rule['for']}")
    print(f"        labels: {{ severity: {rule['severity']} }}")
    print("        annotations:")
    print(f"          summary: {json.dumps(rule['summary'])}")
    print(f"          description: {json.dumps(rule['description'])}")
