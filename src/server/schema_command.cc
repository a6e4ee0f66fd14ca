#include "server/schema_command.h"

#include "server/embedded.h"

namespace weir {

int RunSchema(const Console& console) {
  console.out << PolicySchema();
  return kExitOk;
}

}  // namespace weir
