"""Follows the database with Open vSwitch's Python library, as management programs do: writes
columns, waits until the switch has applied them, and prints the result.
"""

import sys

import ovs.db.idl
import ovs.poller

SCHEMA = '/usr/share/openvswitch/vswitch.ovsschema'


def step(idl):
    """Waits for changes of the database."""
    poller = ovs.poller.Poller()
    idl.wait(poller)
    poller.timer_wait(200)
    poller.block()
    idl.run()


def main():
    """Adds a port by a transaction, and waits for its number."""
    helper = ovs.db.idl.SchemaHelper(SCHEMA)
    for table, columns in [
            ('Open_vSwitch', ['bridges', 'cur_cfg', 'next_cfg']),
            ('Bridge', ['name', 'ports']),
            ('Port', ['name', 'interfaces']),
            ('Interface', ['name', 'ofport', 'error', 'link_state', 'external_ids'])]:
        helper.register_columns(table, columns)
    idl = ovs.db.idl.Idl(sys.argv[1], helper)
    while not idl.has_ever_connected():
        step(idl)
    bridge = next(iter(idl.tables['Bridge'].rows.values()))
    transaction = ovs.db.idl.Transaction(idl)
    interface = transaction.insert(idl.tables['Interface'])
    interface.name = 'p3'
    interface.external_ids = {'iface-id': 'three'}
    port = transaction.insert(idl.tables['Port'])
    port.name = 'p3'
    port.interfaces = [interface]
    bridge.addvalue('ports', port)
    top = next(iter(idl.tables['Open_vSwitch'].rows.values()))
    top.increment('next_cfg')
    print('committed', transaction.commit_block() == ovs.db.idl.Transaction.SUCCESS)
    wanted = transaction.get_increment_new_value()
    while next(iter(idl.tables['Open_vSwitch'].rows.values())).cur_cfg < wanted:
        step(idl)
    for row in idl.tables['Interface'].rows.values():
        if row.name == 'p3':
            print('port', row.ofport, row.error, dict(row.external_ids))


main()
