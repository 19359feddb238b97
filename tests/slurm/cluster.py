"""A Slurm cluster of two nodes on this machine: munged, slurmctld and two slurmd, in a folder of its own."""

import os
import shutil
import signal
import socket
import subprocess
import time

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "sinfo", "scancel", "scontrol")
PLACES = "/usr/local/sbin:/usr/sbin:/sbin:" + os.environ.get("PATH", "/usr/bin:/bin")

CONF = """ClusterName=tuner
SlurmctldHost=localhost
SlurmctldPort={controller}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
CredType=cred/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=3
StateSaveLocation={folder}/controller
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
SlurmdTimeout=10
KillWait=20
ReturnToService=1
SchedulerParameters=sched_interval=1,sched_min_interval=100000,bf_interval=1,batch_sched_delay=0
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
JobCompType=jobcomp/none
NodeName=n1 NodeHostname=localhost NodeAddr=127.0.0.1 Port={n1} CPUs=1
NodeName=n2 NodeHostname=localhost NodeAddr=127.0.0.1 Port={n2} CPUs=1
PartitionName=low Nodes=n[1-2] Default=YES PriorityTier=1 PreemptMode=REQUEUE State=UP
PartitionName=high Nodes=n[1-2] PriorityTier=10 PreemptMode=OFF State=UP
"""


def lacking():
    """The programs that are not here."""
    return [p for p in PROGRAMS if shutil.which(p, path=PLACES) is None]


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def wait_for(what, condition, limit_s=60.0, every_s=0.3):
    """The first true value of condition(). TimeoutError names what did not come."""
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(every_s)
    raise TimeoutError(f"{what}: not within {limit_s:g} s")


class Cluster:
    def __init__(self, folder):
        self.folder = folder
        self.env = dict(os.environ, PATH=PLACES, SLURM_CONF=f"{folder}/slurm.conf")
        self.processes = {}  # by name
        for name in ("controller", "spool-n1", "spool-n2"):
            os.makedirs(f"{folder}/{name}")
        controller, n1, n2 = free_ports(3)
        user = subprocess.run(["id", "-un"], capture_output=True, text=True, check=True).stdout.strip()
        with open(f"{folder}/slurm.conf", "w") as conf:
            conf.write(CONF.format(folder=folder, user=user, controller=controller, n1=n1, n2=n2))
        with open(f"{folder}/munge.key", "wb") as key:
            os.fchmod(key.fileno(), 0o400)
            key.write(os.urandom(128))

    def _begin(self, name, words):
        log = open(f"{self.folder}/{name}.out", "ab")
        self.processes[name] = subprocess.Popen(words, env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                start_new_session=True)
        log.close()

    def start(self):
        f = self.folder
        self._begin("munged", ["munged", "--foreground", "--force", f"--key-file={f}/munge.key", f"--socket={f}/munge.socket",
                               f"--pid-file={f}/munged.pid", f"--log-file={f}/munged.log", f"--seed-file={f}/munge.seed"])
        wait_for("munge's socket", lambda: os.path.exists(f"{f}/munge.socket"))
        self._begin("slurmctld", ["slurmctld", "-D", "-c"])
        for node in ("n1", "n2"):
            self.start_node(node)
        wait_for("two idle nodes", lambda: self.states() == {"n1": "idle", "n2": "idle"})

    def start_node(self, node):
        self._begin(f"slurmd-{node}", ["slurmd", "-D", "-N", node])

    def kill_node(self, node):
        """slurmd alone: what it started lives on, as on a node that the network has lost."""
        self.processes[f"slurmd-{node}"].kill()
        self.processes[f"slurmd-{node}"].wait()

    def run(self, *words, check=True):
        done = subprocess.run(words, env=self.env, capture_output=True, text=True, timeout=60)
        if check and done.returncode != 0:
            raise RuntimeError(f"{' '.join(words)}: {done.stdout}{done.stderr}")
        return done.stdout

    def states(self):
        rows = self.run("sinfo", "--noheader", "--Node", "--format", "%N|%T", check=False).split()
        return dict(row.split("|") for row in rows)

    def tasks(self, name):
        """Rows of squeue by job: (array, task, state, restarts, node)."""
        text = self.run("squeue", "--noheader", "--array", f"--name={name}", "--Format",
                        "JobID:|,ArrayJobID:|,ArrayTaskID:|,State:|,RestartCnt:|,NodeList:|", check=False)
        rows = [line.split("|") for line in text.splitlines() if line.count("|") >= 6]
        return {r[0]: (r[1], r[2], r[3], int(r[4]), r[5]) for r in rows}

    def preempt(self, node):
        """A job of a higher partition takes the node for a moment. Returns its number."""
        return self.run("sbatch", "--parsable", "--partition=high", f"--nodelist={node}", "--job-name=urgent", "--output=/dev/null",
                        "--wrap=sleep 1").strip()

    def hurry(self, name):
        """Slurm lets a task that starts again wait for two minutes, the life of a credential. Here nobody has as much time."""
        for job, row in self.tasks(name).items():
            if row[2] == "PENDING":
                self.run("scontrol", "update", f"JobId={job}", "StartTime=now", check=False)

    def stop(self):
        self.run("scancel", "--me", check=False)
        try:
            wait_for("an empty queue", lambda: not self.run("squeue", "--noheader", check=False).strip(), limit_s=40)
        except TimeoutError:
            pass
        for name in reversed(list(self.processes)):
            process = self.processes[name]
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
