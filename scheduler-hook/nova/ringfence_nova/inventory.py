"""Looks up a request's server or service in Nova's database, within nova-api.

Nova is imported only for a look-up, so that the other modules can be used without it.
"""

COMPUTE = "nova-compute"


class NotThere(Exception):
    """Nova has no such server or service, and will answer that itself."""


def find_server(context, server_id):
    """The server (a `nova.objects.Instance`) in any cell."""
    from nova import context as nova_context
    from nova import exception, objects

    try:
        mapping = objects.InstanceMapping.get_by_instance_uuid(context, server_id)
        if mapping.cell_mapping is None:
            raise NotThere("no host was chosen for it yet")
        with nova_context.target_cell(context, mapping.cell_mapping) as in_cell:
            return objects.Instance.get_by_uuid(in_cell, server_id, expected_attrs=[])
    except (exception.InstanceMappingNotFound, exception.InstanceNotFound) as error:
        raise NotThere(str(error))


def find_service(context, service_uuid):
    """The service (a `nova.objects.Service`) in any cell."""
    from nova import context as nova_context
    from nova import exception, objects

    for cell in objects.CellMappingList.get_all(context.elevated()):
        with nova_context.target_cell(context.elevated(), cell) as in_cell:
            try:
                return objects.Service.get_by_uuid(in_cell, service_uuid)
            except exception.ServiceNotFound:
                continue
    raise NotThere("no cell has this service")


def may_evacuate(context, server):
    target = {"user_id": server.user_id, "project_id": server.project_id}
    return context.can("os_compute_api:os-evacuate", target=target, fatal=False)


def may_update_services(context):
    return context.can("os_compute_api:os-services:update", target={}, fatal=False)
