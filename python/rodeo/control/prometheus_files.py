"""The alarm rules of a system, and a dashboard, for sites that have Prometheus and Grafana: made of the rules and of the metrics that the room declares. Pure."""

import json
import re

from .room_metrics import METRICS

METRIC = re.compile(r"\b(rodeo_room_[a-z_]+)(\{)?")
WAY = {"alarm": "critical", "warning": "warning"}  # what Alertmanager's routes know, beside ours


def of_system(expression, system):
    """An expression whose metrics are those of one system."""
    label = f'system="{_text(system)}"'
    return METRIC.sub(lambda found: f"{found.group(1)}{{{label}" + (", " if found.group(2) else "}"), expression)


def expression_of(rule, system):
    """When the alarm is raised, for Prometheus; None for what only the room can see."""
    if rule.own:
        return of_system(f'rodeo_room_rule_value{{rule="{_text(rule.name)}"}} {rule.comparison} {rule.limit:.17g}', system)
    if not rule.expression:
        return None
    limit = "" if rule.limit is None else f"{rule.limit:.17g}"
    return of_system(rule.expression.replace("{limit}", limit), system)


def rules(system):
    """[{"alert", "expr", "for", "labels", "annotations"}] of a System; rules that are switched off, and those that have no expression, are not in it."""
    found = [
        _entry("control_room_gone", f'absent(rodeo_room_state{{system="{_text(system.name)}"}})', (30, 30), "alarm", system.name,
               "the control room does not say anything", "processes go on without it; rodeo control SYSTEM starts it again"),
    ]
    for rule in system.rules:
        expression = expression_of(rule, system.name)
        if not rule.enabled or expression is None:
            continue
        about = rule.about or f"{rule.of or 'the system'}: {rule.value} {rule.comparison} {rule.limit:g}"
        found.append(_entry(rule.name, expression, rule.needs, rule.severity or "alarm", system.name, rule.text if rule.own and "{" not in rule.text and rule.text else about, rule.do))
        if rule.own and rule.gone != "nothing":
            gone = of_system(f'rodeo_room_rule_gone{{rule="{_text(rule.name)}"}} == 1', system.name)
            found.append(_entry(f"{rule.name}_gone", gone, (3, 4), rule.gone, system.name, f"{rule.value}, which the alarm {rule.name} looks at, is not there", "no data is not good data"))
    return found


def _entry(name, expression, needs, severity, system, about, do):
    times, of = needs
    if times < of:  # so that what comes and goes is heard, too, which `for` forgets
        expression, hold = f"count_over_time(({expression})[{of}s:1s]) >= {times}", 0
    else:
        hold = times if times > 1 else 0
    return {"alert": re.sub(r"[^A-Za-z0-9_]", "_", name), "expr": expression, "for": f"{hold}s",
            "labels": {"severity": WAY[severity], "priority": severity, "rule": name, "system": system}, "annotations": {"summary": about, "action": do}}


def rule_file(system):
    """The text of a rule file for Prometheus."""
    lines = [f"# Alarm rules of {system.name}, made by `rodeo control prometheus {system.file.name}`: change the system file, and make it anew.", "groups:", f"  - name: {_yaml('rodeo-' + system.name)}", "    rules:"]
    for entry in rules(system):
        lines.append(f"      - alert: {entry['alert']}")
        lines += [f"        {key}: {_yaml(entry[key])}" for key in ("expr", "for")]
        for table in ("labels", "annotations"):
            lines.append(f"        {table}:")
            lines += [f"          {key}: {_yaml(value)}" for key, value in entry[table].items()]
    return "\n".join(lines) + "\n"


def _yaml(text):
    """A text as YAML has it: as JSON, which it includes."""
    return json.dumps(text, ensure_ascii=False)


def _text(value):
    return value.replace("\\", "\\\\").replace('"', '\\"')


def dashboard():
    """A dashboard for Grafana, as JSON: a panel for each that METRICS name, in their order; the system is chosen at its top."""
    panels = {}
    for metric in METRICS:
        if metric.panel:
            panels.setdefault(metric.panel, []).append(metric)
    return {
        "title": "Rodeo: control room", "uid": "rodeo-control-room", "tags": ["rodeo"], "timezone": "utc", "schemaVersion": 39, "editable": True, "refresh": "5s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [
            {"name": "source", "type": "datasource", "query": "prometheus", "label": "data source"},
            {"name": "system", "type": "query", "datasource": {"type": "prometheus", "uid": "${source}"}, "query": "label_values(rodeo_room_state, system)", "refresh": 2}]},
        "panels": [_panel(index, title, metrics) for index, (title, metrics) in enumerate(panels.items())],
    }


def _panel(index, title, metrics):
    source = {"type": "prometheus", "uid": "${source}"}
    return {
        "id": index + 1, "title": title, "type": "state-timeline" if title in ("State", "Processes", "Alarms", "Limited by") else "timeseries", "datasource": source,
        "description": "; ".join(metric.help for metric in metrics), "gridPos": {"h": 8, "w": 12, "x": 12 * (index % 2), "y": 8 * (index // 2)},
        "fieldConfig": {"defaults": {"unit": metrics[0].unit, "min": 0}, "overrides": []},
        "targets": [{"refId": chr(ord("A") + number), "datasource": source, "expr": f'{metric.name}{{system="$system"}}' + (" == 1" if title in ("Processes", "State") else ""), "legendFormat": metric.legend}
                    for number, metric in enumerate(metrics)],
    }


def dashboard_text():
    """The file that is committed."""
    return json.dumps(dashboard(), indent=1) + "\n"
