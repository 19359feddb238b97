#!/usr/bin/env python3
"""kubectl for a test: the few verbs that deploy/kubernetes/README.md uses, played by podman on this machine.

Pods of a StatefulSet and of a Deployment are played from the manifests with their users, commands, probes, volumes and secrets.
What podman cannot play is left out, and said: network policies, disruption budgets, claims (a folder instead), node
selectors, CPU limits. Pods share the network of the machine, where each service's name is 127.0.0.1.

Environment: KUBE_FOLDER, where volumes and secrets lie; KUBE_HOSTS, the file of names; podman's own variables.
"""

import copy
import json
import os
import subprocess
import sys
import time

import yaml

FOLDER = os.environ["KUBE_FOLDER"]


def refuse(text):
    print(f"kubectl: {text}", file=sys.stderr)
    sys.exit(1)


def podman(*words, check=True, **how):
    return subprocess.run(["podman", *words], check=check, text=True, **how)


def made(path, user, group, mode):
    os.makedirs(path, exist_ok=True)
    os.chown(path, user, group)
    os.chmod(path, mode)
    return path


def volume_of(volume, pod, spec, claims):
    """The folder that stands for a volume of the pod."""
    group, user = spec["securityContext"]["fsGroup"], spec["securityContext"]["runAsUser"]
    name = volume["name"]
    if "secret" in volume:
        source = f"{FOLDER}/secrets/{volume['secret']['secretName']}"
        if not os.path.isdir(source):
            refuse(f"pod {pod}: there is no secret {volume['secret']['secretName']}")
        for file in os.listdir(source):
            os.chown(f"{source}/{file}", 0, group)
            os.chmod(f"{source}/{file}", int(volume["secret"]["defaultMode"]))
        return source
    if "hostPath" in volume:
        path = volume["hostPath"]["path"]
        if volume["hostPath"].get("type") == "Directory" and not os.path.isdir(path):
            refuse(f"pod {pod}: hostPath type check failed: {path} is not a directory")
        return path
    if "emptyDir" in volume or name in claims:
        return made(f"{FOLDER}/volumes/{pod}-{name}", user, group, 0o2770)
    return refuse(f"pod {pod}: found a volume of another kind: {volume}")


def play(pod, template, claims=()):
    spec = copy.deepcopy(template["spec"])
    volumes = {v["name"]: volume_of(v, pod, spec, claims) for v in [*spec.get("volumes", []), *({"name": c} for c in claims)]}
    spec.pop("nodeSelector", None)
    spec["hostNetwork"] = True
    spec["volumes"] = [{"name": name, "hostPath": {"path": path, "type": "Directory"}} for name, path in volumes.items()]
    for container in [*spec["containers"], *spec.get("initContainers", [])]:
        container["imagePullPolicy"] = "Never"
        container["image"] = "localhost/" + container["image"]
        container.pop("ports", None)
        container["resources"] = {"limits": {"memory": container.get("resources", {}).get("limits", {}).get("memory", "1Gi")}}
        values = {}
        for variable in container.get("env", []):
            if "valueFrom" in variable:
                if variable.pop("valueFrom") != {"fieldRef": {"fieldPath": "metadata.name"}}:
                    refuse(f"pod {pod}: expected a variable of metadata.name, found {variable}")
                variable["value"] = pod
            values[variable["name"]] = variable["value"]
        for name, value in values.items():  # the kubelet does it; this podman does not
            container["command"] = [word.replace(f"$({name})", value) for word in container["command"]]
    # podman removes init containers that run once, now and then before they have quite ended; this kind it keeps.
    metadata = {"name": pod, "annotations": {"io.podman.annotations.init.container.type": "always"}}
    path = f"{FOLDER}/{pod}.yaml"
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}, file)  # JSON is YAML
    done = podman("kube", "play", path, check=False, capture_output=True)
    if done.returncode != 0:
        refuse(f"pod {pod}: {done.stdout}{done.stderr}")


def apply(paths):
    os.makedirs(f"{FOLDER}/kept", exist_ok=True)
    documents = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            documents += list(yaml.safe_load_all(file))
    for document in documents:
        with open(f"{FOLDER}/kept/{document['kind'].lower()}.{document['metadata']['name']}.json", "w", encoding="utf-8") as file:
            json.dump(document, file)
    for document in documents:
        kind, name = document["kind"], document["metadata"]["name"]
        if kind in ("StatefulSet", "Deployment"):
            spec = document["spec"]
            labels = spec["template"]["metadata"]["labels"]
            if any(labels.get(key) != value for key, value in spec["selector"]["matchLabels"].items()):
                refuse(f"{kind} {name}: its selector does not match its own pods")
            claims = [claim["metadata"]["name"] for claim in spec.get("volumeClaimTemplates", [])]
            for number in range(spec["replicas"]):
                play(f"{name}-{number}", spec["template"], claims)
            print(f"{kind.lower()}/{name} created")
        elif kind == "Service":
            with open(os.environ["KUBE_HOSTS"], "a", encoding="utf-8") as hosts:  # which containers get when they begin
                hosts.write(f"127.0.0.1 {name}\n")
            print(f"service/{name} created")
        elif kind in ("NetworkPolicy", "PodDisruptionBudget"):
            print(f"{kind.lower()}/{name} is not played here")
        else:
            refuse(f"found a {kind}, which this test knows nothing of")


def rollout_status(what):
    kind, _, name = what.partition("/")
    with open(f"{FOLDER}/kept/{kind}.{name}.json", encoding="utf-8") as file:
        spec = json.load(file)["spec"]
    container = spec["template"]["spec"]["containers"][0]
    end = time.monotonic() + 120
    for number in range(spec["replicas"]):
        probe = ["exec", f"{name}-{number}-{container['name']}", *container["readinessProbe"]["exec"]["command"]]
        while podman(*probe, check=False, capture_output=True).returncode != 0:
            if time.monotonic() > end:
                refuse(f"{what}: not ready within 120 s")
            time.sleep(1)
    print(f"{what} is ready")


def main(words):
    if words[:1] == ["apply"]:
        files = words[1:]
        if files[::2] != ["-f"] * (len(files) // 2) or len(files) % 2:
            refuse(f"apply: expected -f FILE, found {files}")
        apply(files[1::2])
    elif words[:2] == ["rollout", "status"] and len(words) == 3:
        rollout_status(words[2])
    elif words[:1] == ["exec"] and words[2] == "-c" and words[4] == "--":
        sys.exit(podman("exec", f"{words[1]}-{words[3]}", *words[5:], check=False).returncode)
    elif words[:3] == ["create", "secret", "generic"] and len(words) == 5 and words[4].startswith("--from-file="):
        key, _, source = words[4].removeprefix("--from-file=").partition("=")
        folder = made(f"{FOLDER}/secrets/{words[3]}", 0, 0, 0o755)
        with open(source, encoding="utf-8") as file, open(f"{folder}/{key}", "w", encoding="utf-8") as copied:
            copied.write(file.read())
        print(f"secret/{words[3]} created")
    else:
        refuse(f"this test knows nothing of: {' '.join(words)}")


if __name__ == "__main__":
    main(sys.argv[1:])
