# keystone_seed.py CONFIGURATION SPECIFICATION: makes Keystone's tables, and in them the users and services of the JSON.
import json
import sys
import uuid

from keystone.cmd.bootstrap import Bootstrapper
from keystone.common import provider_api
from keystone.common.sql import upgrades
from keystone.server import configure

configuration, specification = sys.argv[1], json.loads(sys.argv[2])
sys.argv = ["keystone"]
configure(config_files=[configuration])
upgrades.offline_sync_database_to_version()

keystone = Bootstrapper()
keystone.admin_username = keystone.project_name = keystone.admin_role_name = "admin"
keystone.admin_password = specification["password"]
keystone.region_id = specification["region"]
keystone.service_name = "keystone"
keystone.public_url = keystone.internal_url = keystone.admin_url = "http://unset"
keystone.bootstrap()

providers = provider_api.ProviderAPIs
roles = {name: getattr(keystone, name + "_role_id") for name in ("admin", "member", "reader")}
role = {"id": "service", "name": "service", "options": {}}
roles["service"] = providers.role_api.create_role(role["id"], role)["id"]
projects = {}
for name in specification["projects"]:
    # Nova only accepts a project's id of hexadecimal digits.
    id = projects[name] = uuid.uuid4().hex
    project = {"id": id, "name": name, "domain_id": "default", "description": "", "enabled": True, "tags": [], "options": {}}
    providers.resource_api.create_project(id, project)
for user in specification["users"]:
    made = providers.identity_api.create_user(
        {"name": user["name"], "domain_id": "default", "password": specification["password"], "enabled": True}
    )
    for name in user["roles"]:
        providers.assignment_api.add_role_to_user_and_project(made["id"], projects[user["project"]], roles[name])
for name, kind in specification["services"]:
    providers.catalog_api.create_service(name, {"id": name, "name": name, "type": kind, "enabled": True})
    for interface in ("public", "internal", "admin"):
        id = name + "-" + interface
        endpoint = {"id": id, "service_id": name, "interface": interface, "url": "http://unset", "enabled": True}
        providers.catalog_api.create_endpoint(id, {**endpoint, "region_id": specification["region"]})
