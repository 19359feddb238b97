"""The daemon and the workers of deploy/kubernetes, played by podman: the daemon's probe turns when the daemon hangs and turns back, a
deleted pod's worker finishes what it holds, another pod goes on, and every trial is measured once.

    kube_test.py BIN MANIFESTS
"""

import collections
import copy
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

SKIPPED = 77
IMAGE = "localhost/tuner-test:0.1.0"
JOB = {"op": "matmul", "a": [1, 2048], "b": [2048, 1000], "bias": True, "constant": ["b"], "target": "cpu", "trials": 96}
BEGUN = time.monotonic()


def say(text):
    print(f"{time.monotonic() - BEGUN:6.1f} s  {text}", flush=True)


def check(condition, what):
    if not condition:
        raise AssertionError(what)


def wait_for(what, condition, limit_s=60.0, every_s=0.5):
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(every_s)
    raise TimeoutError(f"{what}: not within {limit_s:g} s")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def why_not():
    """Why the test cannot run here; empty: it can."""
    if os.geteuid() != 0:
        return "only root plays pods here"
    missing = [p for p in ("podman", "runc", "catatonit") if shutil.which(p, path="/usr/libexec/podman:/usr/sbin:" + os.environ["PATH"]) is None]
    try:
        import yaml  # noqa: F401
    except ImportError:
        missing.append("python3-yaml")
    return f"not here: {' '.join(missing)}. Debian: apt-get install podman runc catatonit python3-yaml" if missing else ""


class Podman:
    """podman with storage and settings of its own."""

    def __init__(self, folder):
        self.folder = folder
        with open(f"{folder}/containers.conf", "w") as conf:
            # runc: crun refuses hosts with both versions of cgroups.
            conf.write('[containers]\ndefault_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]\n'
                       '[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\n')
        with open(f"{folder}/storage.conf", "w") as conf:
            conf.write(f'[storage]\ndriver = "vfs"\ngraphroot = "{folder}/graph"\nrunroot = "{folder}/run"\n')
        self.env = dict(os.environ, CONTAINERS_CONF=f"{folder}/containers.conf", CONTAINERS_STORAGE_CONF=f"{folder}/storage.conf",
                        HOME=folder, XDG_RUNTIME_DIR=folder)

    def __call__(self, *words, may_fail=False, limit_s=180, stdin=None):
        done = subprocess.run(["podman", *words], env=self.env, capture_output=True, text=True, timeout=limit_s, input=stdin)
        if done.returncode != 0 and not may_fail:
            raise RuntimeError(f"podman {' '.join(words)} ended with {done.returncode}: {done.stdout}{done.stderr}")
        return done

    def exec(self, container, *words, **how):
        return self("exec", container, *words, **how).stdout

    def stop(self):
        self("pod", "rm", "--all", "--force", "--time", "5", may_fail=True)
        self("volume", "rm", "--all", "--force", may_fail=True)
        self("rmi", "--all", "--force", may_fail=True)


def make_image(podman, bin_folder):
    """This build's programs, a shell, and the libraries they need."""
    root = f"{podman.folder}/root"
    for folder in ("bin", "usr/bin", "etc", "data", "work", "locks", "credentials", "proc", "sys", "dev"):
        os.makedirs(f"{root}/{folder}")
    os.makedirs(f"{root}/tmp")
    os.chmod(f"{root}/tmp", 0o1777)
    programs = [f"{bin_folder}/{p}" for p in ("tuner", "measure_server", "runner")] + ["/bin/sh"]
    for program in programs:
        shutil.copy(program, f"{root}/usr/bin/" if program != "/bin/sh" else f"{root}/bin/sh")
        for library in re.findall(r"(/\S+) \(0x", subprocess.run(["ldd", program], capture_output=True, text=True).stdout):
            os.makedirs(os.path.dirname(root + library), exist_ok=True)
            if not os.path.exists(root + library):
                shutil.copy(os.path.realpath(library), root + library)
    with open(f"{root}/etc/passwd", "w") as file:
        file.write("root:x:0:0::/:/bin/sh\ntuner:x:10001:10001::/data:/bin/sh\nworker:x:10002:10002::/scratch:/bin/sh\n")
    with subprocess.Popen(["tar", "-C", root, "-c", "."], stdout=subprocess.PIPE) as tar:
        subprocess.run(["podman", "import", "--change", "ENV PATH=/usr/bin:/bin", "-", IMAGE], env=podman.env, stdin=tar.stdout, check=True, capture_output=True, timeout=300)
    shutil.rmtree(root)


def documents(path):
    import yaml
    with open(path) as file:
        return list(yaml.safe_load_all(file))


def playable(spec, volumes):
    """What podman on this machine can play of a pod's spec."""
    spec = copy.deepcopy(spec)
    spec["hostNetwork"] = True
    spec.pop("nodeSelector", None)
    for container in spec["containers"] + spec.get("initContainers", []):
        container["image"] = IMAGE
        container["imagePullPolicy"] = "Never"
        container.pop("ports", None)
        container["resources"] = {"limits": {"memory": "4Gi"}}
    spec["volumes"] = [{"name": name, "hostPath": {"path": path, "type": "Directory"}} for name, path in volumes.items()]
    return spec


def folder_of(path, user):
    os.makedirs(path, exist_ok=True)
    os.chown(path, user, user)
    return path


class Farm:
    def __init__(self, podman, manifests):
        self.podman, self.manifests = podman, manifests
        self.port, self.pages = free_port(), free_port()
        self.data = folder_of(f"{podman.folder}/data", 10001)

    def play(self, name, pod):
        path = f"{self.podman.folder}/{name}.yaml"
        with open(path, "w") as file:
            json.dump(pod, file, indent=1)  # JSON is YAML
        self.podman("kube", "play", path)

    def start_daemon(self):
        stateful = next(d for d in documents(f"{self.manifests}/daemon.yaml") if d["kind"] == "StatefulSet")
        template = stateful["spec"]["template"]
        spec = playable(template["spec"], {"data": self.data})
        words = spec["containers"][0]["command"]
        words[words.index("tls:0.0.0.0:7070")] = f"tls:127.0.0.1:{self.port}"
        words[words.index("tls:0.0.0.0:9470")] = f"tls:127.0.0.1:{self.pages}"
        # podman removes init containers that run once, now and then before they have quite ended; this kind it keeps.
        kept = {"io.podman.annotations.init.container.type": "always"}
        self.play("daemon", {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "tuner-daemon-0", "annotations": kept}, "spec": spec})
        self.daemon = "tuner-daemon-0-daemon"
        wait_for("the daemon's startup probe", self.ready)

    def probe(self):
        """Exit code of the readiness probe of the manifest, run as the kubelet runs it."""
        stateful = next(d for d in documents(f"{self.manifests}/daemon.yaml") if d["kind"] == "StatefulSet")
        words = stateful["spec"]["template"]["spec"]["containers"][0]["readinessProbe"]["exec"]["command"]
        return self.podman("exec", self.daemon, *words, may_fail=True).returncode

    def ready(self):
        return self.probe() == 0

    def tuner(self, *words, **how):
        return self.podman.exec(self.daemon, "tuner", *words, **how)

    def trials_done(self):
        workers = json.loads(self.tuner("workers", "--json", "--db", "/data/farm.db"))
        return sum(worker["trials_done"] for worker in workers)

    def start_worker(self, name):
        deployment = documents(f"{self.manifests}/workers-cpu.yaml")[0]
        work = folder_of(f"{self.podman.folder}/{name}-work", 10002)
        locks = folder_of(f"{self.podman.folder}/locks", 10002)
        credentials = folder_of(f"{self.podman.folder}/credentials", 10002)
        if not os.path.exists(f"{credentials}/daemon"):
            text = self.tuner("admin", "worker", "nodes", "--fleet", "--db", "/data/farm.db", "--address",
                              f"127.0.0.1:{self.port}", "-o", "-")
            with open(f"{credentials}/daemon", "w") as file:
                os.fchmod(file.fileno(), 0o400)
                os.fchown(file.fileno(), 10002, 10002)
                file.write(text)
        spec = playable(deployment["spec"]["template"]["spec"], {"credentials": credentials, "work": work, "locks": locks})
        for variable in spec["containers"][0]["env"]:
            if variable["name"] == "POD":
                variable.pop("valueFrom")
                variable["value"] = name
        # The kubelet replaces $(NAME) in commands; this podman does not.
        spec["containers"][0]["command"] = [w.replace("$(FLEET)", "nodes").replace("$(POD)", name)
                                            for w in spec["containers"][0]["command"]]
        self.play(name, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
        wait_for(f"worker nodes.{name}", lambda: f"nodes.{name}" in self.tuner("workers", "--db", "/data/farm.db"))

    def delete_pod(self, name):
        """As kubectl delete pod does: TERM, then the manifest's grace. Returns what the worker logged last."""
        deployment = documents(f"{self.manifests}/workers-cpu.yaml")[0]
        grace = deployment["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
        begun = time.monotonic()
        self.podman("pod", "stop", "--time", str(grace), name)
        seconds = time.monotonic() - begun
        log = self.podman("logs", f"{name}-worker", may_fail=True)
        code = self.podman("inspect", "--format", "{{.State.ExitCode}}", f"{name}-worker").stdout.strip()
        self.podman("pod", "rm", "--force", name)
        return seconds, code, log.stdout + log.stderr


def probe_turns(farm):
    check(farm.ready(), "the daemon is not ready")
    farm.podman("pause", farm.daemon)  # it hangs; a probe inside it would hang, too
    outside = subprocess.run([f"{farm.bin}/tuner", "health", "--daemon", f"{farm.podman.folder}/credentials/daemon", "--limit", "2"],
                             capture_output=True, text=True, timeout=60)
    check(outside.returncode == 1, f"a daemon that hangs is called ready: {outside.stdout}{outside.stderr}")
    farm.podman("unpause", farm.daemon)
    wait_for("the probe turns back", farm.ready)
    say(f"the probe turned and turned back: {outside.stderr.strip()}")


def judge(farm):
    text = farm.tuner("records", "export", "--db", "/data/farm.db", "-o", "-")
    trials = [t for t in map(json.loads, text.splitlines()) if t.get("kind") == "trial"]
    measured = [t for t in trials if "outcome" in t]
    times = collections.Counter(t["trial"] for t in measured if t["terminal"])
    workers = collections.Counter(t["worker"] for t in measured)
    lost = {t["trial"] for t in trials} - set(times)
    say(f"{len(times)} trials, by worker {dict(workers)}")
    check(not lost, f"trials without a result: {sorted(lost)}")
    check(max(times.values()) == 1 and len(measured) == len(times), "a trial was measured twice")
    check({t["outcome"] for t in measured} == {"ok"}, "false verdicts")
    return workers


def run(podman, bin_folder, manifests):
    make_image(podman, bin_folder)
    say("image made")
    farm = Farm(podman, manifests)
    farm.bin = bin_folder
    farm.start_daemon()
    say("the daemon's startup probe is green")
    pid = podman("inspect", "--format", "{{.State.Pid}}", farm.daemon).stdout.strip()
    check(os.stat(f"/proc/{pid}").st_uid == 10001, "the daemon does not run as the user of the manifest")
    farm.start_worker("tuner-workers-a")
    probe_turns(farm)
    with open(f"{farm.data}/job.json", "w") as file:
        json.dump(JOB, file)
    result = {}

    def submit_by_token():
        farm.tuner("admin", "token", "test", "--db", "/data/farm.db", "--address", f"127.0.0.1:{farm.port}", "-o", "/data/token")
        done = podman("exec", farm.daemon, "tuner", "submit", "/data/job.json", "--stop-below", "0", "--daemon", "/data/token",
                      may_fail=True, limit_s=600)
        result["code"], result["text"] = done.returncode, done.stdout + done.stderr

    thread = threading.Thread(target=submit_by_token, daemon=True)
    thread.start()
    wait_for("some trials", lambda: farm.trials_done() > 8)
    seconds, code, log = farm.delete_pod("tuner-workers-a")
    check(code == "0", f"the worker of the deleted pod ended with {code}: {log[-400:]}")
    check("finishing what is held" in log, f"it did not drain: {log[-400:]}")
    check(seconds < 60, f"draining took {seconds:.0f} s")
    say(f"a deleted pod drained in {seconds:.1f} s")
    farm.start_worker("tuner-workers-b")
    thread.join(timeout=600)
    check(not thread.is_alive() and result.get("code") == 0, f"the job did not end well: {result.get('text', '')[-600:]}")
    workers = judge(farm)
    check(set(workers) == {"nodes.tuner-workers-a", "nodes.tuner-workers-b"}, f"workers: {dict(workers)}")


def main():
    if why := why_not():
        print(f"skipped: {why}")
        return SKIPPED
    folder = tempfile.mkdtemp(prefix="tuner-kube-test-")
    os.chmod(folder, 0o755)
    podman = Podman(folder)
    try:
        run(podman, os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2]))
    except Exception as error:
        print(f"FAILED: {type(error).__name__}: {error}")
        for row in podman("ps", "--all", "--format", "{{.Names}}", may_fail=True).stdout.split():
            log = podman("logs", "--tail", "8", row, may_fail=True)
            print(f"--- {row}\n{log.stdout}{log.stderr}", end="")
        return 1
    finally:
        podman.stop()
        shutil.rmtree(folder, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
