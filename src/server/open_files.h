// How many files this process may have open, which is how many connections it can have.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace weir {

// Makes room for so many connections, each of which is an open file. What a person should know if
// there is not enough.
std::optional<std::string> MakeRoomForConnections(std::int64_t connections);

// Shells and service managers start programs with a bound of 1024, for the sake of very old ones,
// and let them raise it themselves. Raises it as far as the system lets us, and says how far that
// is.
std::size_t RaiseOpenFiles();

}  // namespace weir
