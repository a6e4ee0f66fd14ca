// The page that reports are put into, as it was built from web/.
#pragma once

#include <string_view>

namespace weir::lab {

std::string_view PageFrame();

}  // namespace weir::lab
