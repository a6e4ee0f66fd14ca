// The library `struct` that Redis adds to Lua, for bytes. As far as scripts of ours may use it: no
// alignment, no sequences ended by zero.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>

#include <lua.hpp>

#include "sim/lua_values.h"

namespace weir::sim {
namespace {

// One item of a format, or its end.
struct Item {
  char code = 0;
  std::size_t size = 0;
};

// Reads a format such as ">I4dc8". An error of Lua leaves it by a jump, so nothing here has an end
// to be called.
class Format {
 public:
  Format(lua_State* lua, const char* text) : lua_(lua), at_(text) {}

  bool is_big() const { return is_big_; }

  Item Next() {
    while (*at_ == '<' || *at_ == '>' || *at_ == '=' || *at_ == ' ') {
      if (*at_ != ' ') is_big_ = *at_ == '>';
      ++at_;
    }
    const char code = *at_;
    if (code == 0) return {};
    ++at_;
    switch (code) {
      case 'b':
      case 'B':
      case 'x':
        return {code, 1};
      case 'H':
        return {code, 2};
      case 'd':
        return {code, 8};
      case 'i':
      case 'I':
        return {code, Number(4)};
      case 'c':
        return {code, Number(1)};
      default:
        luaL_error(lua_, "invalid format option [%c]", code);
        return {};
    }
  }

 private:
  std::size_t Number(std::size_t otherwise) {
    if (*at_ < '0' || *at_ > '9') return otherwise;
    std::size_t number = 0;
    for (; *at_ >= '0' && *at_ <= '9'; ++at_) {
      number = number * 10 + static_cast<std::size_t>(*at_ - '0');
    }
    return number;
  }

  lua_State* lua_;
  const char* at_;
  bool is_big_ = false;
};

bool IsSigned(char code) { return code >= 'a'; }

void AddNumber(luaL_Buffer& buffer, std::uint64_t bits, std::size_t size, bool is_big) {
  char bytes[8] = {};
  const std::size_t count = std::min<std::size_t>(size, sizeof bytes);
  for (std::size_t i = 0; i < count; ++i) {
    bytes[is_big ? count - 1 - i : i] = static_cast<char>(bits >> (8 * i));
  }
  luaL_addlstring(&buffer, bytes, count);
}

int Pack(lua_State* lua) {
  Format format(lua, luaL_checkstring(lua, 1));
  luaL_Buffer buffer;
  luaL_buffinit(lua, &buffer);
  int argument = 2;
  for (Item item = format.Next(); item.code != 0; item = format.Next()) {
    if (item.code == 'x') {
      luaL_addchar(&buffer, '\0');
    } else if (item.code == 'c') {
      std::size_t length = 0;
      const char* const text = luaL_checklstring(lua, argument++, &length);
      if (item.size == 0) item.size = length;
      luaL_argcheck(lua, length >= item.size, argument - 1, "string too short");
      luaL_addlstring(&buffer, text, item.size);
    } else {
      const double number = luaL_checknumber(lua, argument++);
      std::uint64_t bits = 0;
      if (item.code == 'd') {
        bits = std::bit_cast<std::uint64_t>(number);
      } else {
        bits = number < 0 ? static_cast<std::uint64_t>(static_cast<std::int64_t>(number))
                          : static_cast<std::uint64_t>(number);
      }
      AddNumber(buffer, bits, item.size, format.is_big());
    }
  }
  luaL_pushresult(&buffer);
  return 1;
}

double Unpacked(const char* at, Item item, bool is_big) {
  std::uint64_t bits = 0;
  const std::size_t count = std::min<std::size_t>(item.size, 8);
  for (std::size_t i = 0; i < count; ++i) {
    const auto byte = static_cast<unsigned char>(at[is_big ? count - 1 - i : i]);
    bits |= std::uint64_t{byte} << (8 * i);
  }
  if (item.code == 'd') return std::bit_cast<double>(bits);
  if (!IsSigned(item.code)) return static_cast<double>(bits);
  const auto unused = static_cast<int>(64 - 8 * count);
  return static_cast<double>(static_cast<std::int64_t>(bits << unused) >> unused);
}

int Unpack(lua_State* lua) {
  Format format(lua, luaL_checkstring(lua, 1));
  std::size_t length = 0;
  const char* const data = luaL_checklstring(lua, 2, &length);
  const double first = luaL_optnumber(lua, 3, 1);
  luaL_argcheck(lua, first >= 1, 3, "offset must be 1 or greater");
  auto at = static_cast<std::size_t>(first) - 1;
  int results = 0;
  for (Item item = format.Next(); item.code != 0; item = format.Next()) {
    luaL_argcheck(lua, at <= length && item.size <= length - at, 2, "data string too short");
    luaL_checkstack(lua, 2, "too many results");
    if (item.code == 'c') {
      lua_pushlstring(lua, data + at, item.size);
      ++results;
    } else if (item.code != 'x') {
      lua_pushnumber(lua, Unpacked(data + at, item, format.is_big()));
      ++results;
    }
    at += item.size;
  }
  lua_pushnumber(lua, static_cast<double>(at + 1));
  return results + 1;
}

}  // namespace

void OpenStructLibrary(lua_State* lua) {
  static constexpr luaL_Reg kFunctions[] = {{"pack", Pack}, {"unpack", Unpack}, {nullptr, nullptr}};
  luaL_register(lua, "struct", kFunctions);
  lua_pop(lua, 1);
}

}  // namespace weir::sim
