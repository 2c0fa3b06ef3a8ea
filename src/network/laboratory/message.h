// What goes over the wires of the laboratory: requests and replies between emulators, and lines between laboratory and agents.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/error.h"

namespace rodeo::network::laboratory {

/// A request for a fragment, and the head of the reply, behind which `bytes` of payload follow. Little-endian: magic, 0, bytes, event.
struct Message {
  std::uint64_t event = 0;
  std::uint64_t bytes = 0;
};

inline constexpr std::size_t kMessageBytes = 24;
inline constexpr std::uint32_t kRequestMagic = 0x51524452;  // "RDRQ"
inline constexpr std::uint32_t kReplyMagic = 0x50524452;    // "RDRP"
inline constexpr std::uint64_t kLargestFragmentBytes = std::uint64_t{1} << 30;

std::array<std::byte, kMessageBytes> encode(std::uint32_t magic, const Message& message);
/// Nothing if it is not that kind of message or asks for more than the largest fragment.
std::optional<Message> decode(std::uint32_t magic, std::span<const std::byte, kMessageBytes> bytes);

/// "verb key=value key=value": what laboratory and agents say to each other. Values have no spaces.
class Line {
 public:
  explicit Line(std::string verb) : verb_(std::move(verb)) {}
  static Line parse(std::string_view text);

  template <typename T>
  Line& set(const std::string& key, const T& value) {
    if constexpr (std::is_convertible_v<T, std::string>) {
      values_[key] = value;
    } else {
      values_[key] = text_of(value);
    }
    return *this;
  }

  const std::string& verb() const { return verb_; }
  const std::string& rest() const { return rest_; }  ///< of what was parsed: all behind the verb
  std::string text(const std::string& key) const;    ///< empty if there is none
  /// Error network.agent if it is missing or no number.
  Result<double> number(const std::string& key) const;
  Result<std::int64_t> integer(const std::string& key) const;

  std::string str() const;  ///< without the end of line

 private:
  template <typename T>
  Result<T> read(const std::string& key) const;
  static std::string text_of(double value);
  static std::string text_of(std::int64_t value) { return std::to_string(value); }
  static std::string text_of(std::uint64_t value) { return std::to_string(value); }
  static std::string text_of(std::uint32_t value) { return std::to_string(value); }

  std::string verb_;
  std::string rest_;
  std::map<std::string, std::string> values_;
};

}  // namespace rodeo::network::laboratory
