#!/usr/bin/env python3
"""Writes rules with the structure of Antrea's network policies.

    make-policies.py POLICIES DIRECTORY

Connections are tracked in one zone. Each policy is a conjunction of ten source addresses, ten
destination addresses and five services; policies of all pods isolate them. Antrea needs a cluster, so
these rules are not recorded. The order of tables, the use of conjunctions with metrics in the
connection's label, and the ports of ingress and egress policies are those of Antrea's documentation
(docs/design/ovs-pipeline.md of its repository). The script writes flows.txt.gz and groups.txt into
DIRECTORY.
"""

from recording import arguments, write

PODS = {1: ("0a:00:00:00:00:01", "10.0.0.3"), 2: ("0a:00:00:00:00:02", "10.0.0.4"),
        3: ("0a:00:00:00:00:03", "10.0.0.5"), 4: ("0a:00:00:00:00:04", "10.0.0.6")}
ZONE = 65520
CLASSIFIER, SPOOF_GUARD, CONNTRACK, CONNTRACK_STATE, EGRESS, EGRESS_DEFAULT, L2, INGRESS, INGRESS_DEFAULT, \
    COMMIT, OUTPUT = range(0, 110, 10)


def policy_rules(number, table, own, label):
    """Returns the rules of one policy, as a conjunction of three clauses."""
    identity, priority = 10 + number, 14000 + number % 1000
    base = f"table={table},priority={priority},ip"
    rules = [f"table={table},priority={priority},conj_id={identity},ip,"
             f"actions=load:{identity}->{label},resubmit(,{table + 20 if table == EGRESS else COMMIT})"]
    for n in range(10):
        member = number * 10 + n
        rules.append(f"{base},nw_src=10.{1 + member // 65536}.{member // 256 % 256}.{member % 256},"
                     f"actions=conjunction({identity},1/3)")
        rules.append(f"{base},nw_dst=10.{101 + member // 65536}.{member // 256 % 256}.{member % 256},"
                     f"actions=conjunction({identity},2/3)")
    for n in range(5):
        rules.append(f"table={table},priority={priority},tcp,tp_dst={8000 + (number + n) % 1000},"
                     f"actions=conjunction({identity},3/3)")
    pods = [address for _, address in PODS.values()]
    if number == 0:
        rules += [f"{base},{own}={pod},actions=conjunction({identity},{1 if own == 'nw_src' else 2}/3)"
                  for pod in pods]
        peer = "nw_dst" if own == "nw_src" else "nw_src"
        rules += [f"{base},{peer}={pod},actions=conjunction({identity},{2 if own == 'nw_src' else 1}/3)"
                  for pod in pods]
        rules.append(f"table={table},priority={priority},udp,tp_dst=0x1000/0xf000,"
                     f"actions=conjunction({identity},3/3)")
    return rules


def rules(policies):
    """Returns all rules."""
    lines = [f"table={table},priority=0,actions=drop" for table in (CLASSIFIER, SPOOF_GUARD, L2, OUTPUT)]
    for port, (mac, address) in PODS.items():
        lines += [
            f"table={CLASSIFIER},priority=190,in_port={port},"
            f"actions=load:0x3->NXM_NX_REG0[0..3],resubmit(,{SPOOF_GUARD})",
            f"table={SPOOF_GUARD},priority=200,ip,in_port={port},dl_src={mac},nw_src={address},"
            f"actions=resubmit(,{CONNTRACK})",
            f"table={L2},priority=200,dl_dst={mac},"
            f"actions=load:{port}->NXM_NX_REG1[],load:1->NXM_NX_REG0[8],resubmit(,{INGRESS})",
            f"table={EGRESS_DEFAULT},priority=200,ip,nw_src={address},actions=drop",
            f"table={INGRESS_DEFAULT},priority=200,ip,nw_dst={address},actions=drop",
        ]
    lines += [
        f"table={CONNTRACK},priority=200,ip,actions=ct(table={CONNTRACK_STATE},zone={ZONE},nat)",
        f"table={CONNTRACK_STATE},priority=200,ct_state=+inv+trk,ip,actions=drop",
        f"table={CONNTRACK_STATE},priority=190,ct_state=-new+est+trk,ip,"
        f"actions=load:1->NXM_NX_REG0[9],resubmit(,{L2})",
        f"table={CONNTRACK_STATE},priority=0,actions=resubmit(,{EGRESS})",
        f"table={EGRESS},priority=0,actions=resubmit(,{EGRESS_DEFAULT})",
        f"table={EGRESS_DEFAULT},priority=0,actions=resubmit(,{L2})",
        f"table={INGRESS},priority=65000,ct_state=-new+est+trk,ip,actions=resubmit(,{COMMIT})",
        f"table={INGRESS},priority=0,actions=resubmit(,{INGRESS_DEFAULT})",
        f"table={INGRESS_DEFAULT},priority=0,actions=resubmit(,{COMMIT})",
        f"table={COMMIT},priority=200,ct_state=+new+trk,ip,actions=ct(commit,table={OUTPUT},zone={ZONE},"
        "exec(move:NXM_NX_REG5[]->NXM_NX_CT_LABEL[32..63],move:NXM_NX_REG6[]->NXM_NX_CT_LABEL[0..31]))",
        f"table={COMMIT},priority=0,actions=resubmit(,{OUTPUT})",
        f"table={OUTPUT},priority=200,reg0=0x100/0x100,actions=output:NXM_NX_REG1[]",
    ]
    for number in range(policies):
        lines += policy_rules(number, EGRESS, "nw_src", "NXM_NX_REG5[]")
        lines += policy_rules(number, INGRESS, "nw_dst", "NXM_NX_REG6[]")
    return lines


def main():
    policies, directory = arguments(__doc__, 2)
    write(directory, rules(int(policies)), [])


main()
