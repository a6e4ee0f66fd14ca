// weir schema: the JSON Schema of policy files, for editors.
#pragma once

#include "server/console.h"

namespace weir {

int RunSchema(const Console& console);

}  // namespace weir
