// Configuration keys. The room or plug-in that reads a key declares it once in C++, with type, range, default and help. The
// declarations validate files, fill in defaults, and write the reference and the JSON Schema.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace rodeo {

enum class KeyType : std::uint8_t {
  boolean,       ///< true | false
  integer,       ///< 42
  real,          ///< 0.5
  text,          ///< "name"
  duration,      ///< "10ms"; held in nanoseconds
  size,          ///< "2MiB" or a number of bytes
  rate,          ///< "100kHz" or a number of hertz
  choice,        ///< one of Key::choices
  path,          ///< a file or directory; relative to the configuration file
  fid,           ///< a FELIX identifier, "0x1000000000540000" or an integer
  source_id,     ///< "0x00610001" or an integer
  text_list,     ///< ["a", "b"]
  fid_list,      ///< FIDs, each "0x..." or a range "0x...+24" (24 FIDs with consecutive e-links, continued in the next link)
  integer_list,  ///< [1, "0x11"], none negative
};

/// One configuration key of a table. Numbers are in the base unit of the type (nanoseconds, bytes, hertz).
struct Key {
  std::string name;  ///< snake_case, without its table
  KeyType type = KeyType::text;
  std::string fallback = {};  ///< default, written as in a file; meaningless if required
  std::string help = {};      ///< first sentence short; more may follow
  double minimum = -1e300;
  double maximum = 1e300;
  std::vector<std::string> choices = {};
  bool required = false;
};

/// Validated values of one table; contains every declared key.
class Parameters {
 public:
  using Value = std::variant<bool, std::int64_t, double, std::string, std::vector<std::string>, std::vector<std::uint64_t>>;

  void set(std::string name, Value value) { values_[std::move(name)] = std::move(value); }
  bool has(std::string_view name) const { return values_.find(name) != values_.end(); }

  bool boolean(std::string_view name) const { return get<bool>(name); }
  std::int64_t integer(std::string_view name) const { return get<std::int64_t>(name); }
  double real(std::string_view name) const { return get<double>(name); }
  const std::string& text(std::string_view name) const { return get<std::string>(name); }  ///< text, choice and path
  std::chrono::nanoseconds duration(std::string_view name) const {
    return std::chrono::nanoseconds{get<std::int64_t>(name)};
  }
  std::uint64_t bytes(std::string_view name) const { return static_cast<std::uint64_t>(get<std::int64_t>(name)); }
  double rate_hz(std::string_view name) const { return get<double>(name); }
  std::uint64_t id(std::string_view name) const {
    return static_cast<std::uint64_t>(get<std::int64_t>(name));
  }  ///< fid, source_id
  const std::vector<std::string>& list(std::string_view name) const { return get<std::vector<std::string>>(name); }
  const std::vector<std::uint64_t>& fids(std::string_view name) const { return get<std::vector<std::uint64_t>>(name); }
  const std::vector<std::uint64_t>& integers(std::string_view name) const { return fids(name); }

 private:
  template <typename T>
  const T& get(std::string_view name) const {
    const auto found = values_.find(name);
    if (found == values_.end()) throw std::logic_error("undeclared configuration key: " + std::string(name));
    if (const T* value = std::get_if<T>(&found->second)) return *value;
    throw std::logic_error("configuration key read as another type: " + std::string(name));
  }

  std::map<std::string, Value, std::less<>> values_;
};

}  // namespace rodeo
