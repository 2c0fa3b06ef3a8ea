#include "network/laboratory/message.h"

#include <fmt/core.h>

#include <charconv>
#include <cstring>

namespace rodeo::network::laboratory {

std::array<std::byte, kMessageBytes> encode(std::uint32_t magic, const Message& message) {
  std::array<std::byte, kMessageBytes> bytes{};
  std::memcpy(bytes.data(), &magic, sizeof magic);
  std::memcpy(bytes.data() + 8, &message.bytes, sizeof message.bytes);
  std::memcpy(bytes.data() + 16, &message.event, sizeof message.event);
  return bytes;
}

std::optional<Message> decode(std::uint32_t magic, std::span<const std::byte, kMessageBytes> bytes) {
  std::uint64_t head = 0;
  Message message;
  std::memcpy(&head, bytes.data(), sizeof head);
  std::memcpy(&message.bytes, bytes.data() + 8, sizeof message.bytes);
  std::memcpy(&message.event, bytes.data() + 16, sizeof message.event);
  if (head != magic || message.bytes > kLargestFragmentBytes) return std::nullopt;
  return message;
}

Line Line::parse(std::string_view text) {
  const auto next = [&text]() {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return word;
  };
  Line line{std::string(next())};
  line.rest_ = std::string(text);
  while (!text.empty()) {
    const std::string_view word = next();
    const std::size_t equals = word.find('=');
    if (equals != std::string_view::npos)
      line.values_[std::string(word.substr(0, equals))] = std::string(word.substr(equals + 1));
  }
  return line;
}

std::string Line::text(const std::string& key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? std::string{} : found->second;
}

template <typename T>
Result<T> Line::read(const std::string& key) const {
  const std::string value = text(key);
  T result = 0;
  const auto read = std::from_chars(value.data(), value.data() + value.size(), result);
  if (read.ec == std::errc{} && read.ptr == value.data() + value.size()) return result;
  return std::unexpected(Error{"network.agent", fmt::format("`{}` has no number for {}", verb_, key), "",
                               "laboratory and agents are of different versions?"});
}

Result<double> Line::number(const std::string& key) const { return read<double>(key); }
Result<std::int64_t> Line::integer(const std::string& key) const { return read<std::int64_t>(key); }

std::string Line::text_of(double value) { return fmt::format("{}", value); }

std::string Line::str() const {
  std::string text = verb_;
  for (const auto& [key, value] : values_) text += fmt::format(" {}={}", key, value);
  return text;
}

}  // namespace rodeo::network::laboratory
