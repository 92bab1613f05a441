-- Once, in an empty database: the role of the services, which owns their database and nothing else.
\set password `cat /run/secrets/postgres-app.password`
CREATE ROLE ringfence LOGIN PASSWORD :'password';
CREATE DATABASE ringfence OWNER ringfence;
REVOKE CONNECT ON DATABASE ringfence FROM PUBLIC;
