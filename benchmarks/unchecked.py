"""The platform's assets without a single check. Belongs here: what a run is compared with to tell what its checks cost."""

import dagster as dg

from orders_platform import definitions

defs = dg.Definitions(assets=definitions.ASSETS, resources=definitions.defs.resources, executor=definitions.defs.executor)
