// The slow twin of the event decoders: it reads word by word from a vector and throws if a word is missing or wrong.
// It shares no code with src/formats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <vector>

namespace rodeo::slow {

using Words = std::vector<std::uint32_t>;

inline Words words_of(std::span<const std::byte> bytes) {
  Words words;
  for (std::size_t i = 0; i + 4 <= bytes.size(); i += 4) {
    std::uint32_t word = 0;
    for (int b = 3; b >= 0; --b) word = word << 8 | static_cast<std::uint32_t>(bytes[i + static_cast<std::size_t>(b)]);
    words.push_back(word);
  }
  return words;
}

class Tape {
 public:
  explicit Tape(Words words) : words_(std::move(words)) {}
  std::uint32_t take() { return words_.at(at_++); }
  Words take(std::uint64_t n) {
    if (n > words_.size() - at_) throw std::out_of_range("list");
    Words list;
    for (std::uint64_t i = 0; i < n; ++i) list.push_back(take());
    return list;
  }
  Words counted() { return take(take()); }
  std::size_t left() const { return words_.size() - at_; }

 private:
  Words words_;
  std::size_t at_ = 0;
};

inline void require(bool condition) {
  if (!condition) throw std::runtime_error("malformed");
}

struct Chunk {
  std::uint32_t word0 = 0;
  std::uint32_t link_id = 0;
  std::vector<std::byte> bytes;
  bool operator==(const Chunk&) const = default;
};

struct Rod {
  Words header;
  Words status;
  Words data;
  std::uint32_t position = 0;
};

struct Rob {
  Words header;  // the five header words before the status
  Words status;
  std::uint32_t checksum_type = 0;
  Words payload;
  std::uint32_t checksum = 0;
};

struct Event {
  Words generic;
  Words status;
  std::uint32_t checksum_type = 0;
  Words specific;
  Words lists[4];
  Words payload;
  std::uint32_t checksum = 0;
};

inline Rod rod(const Words& words) {
  Rod rod;
  require(words.size() >= 12);
  Tape tape(words);
  rod.header = tape.take(9);
  require(rod.header[0] == 0xee1234ee && rod.header[1] == 9 && rod.header[2] >> 16 == 0x0301);
  Words body = tape.take(tape.left() - 3);
  const std::uint64_t status_count = tape.take();
  const std::uint64_t data_count = tape.take();
  rod.position = tape.take();
  require(rod.position < 2 && status_count + data_count == body.size());
  Tape inside(body);
  if (rod.position == 0) rod.status = inside.take(status_count);
  rod.data = inside.take(data_count);
  if (rod.position == 1) rod.status = inside.take(status_count);
  return rod;
}

inline Rob rob(const Words& words) {
  Rob rob;
  Tape tape(words);
  rob.header = tape.take(5);
  require(rob.header[0] == 0xdd1234dd && (rob.header[3] >> 16 == 0x0500 || rob.header[3] >> 16 == 0x0400));
  require(rob.header[1] <= words.size());
  tape = Tape(Words(words.begin(), words.begin() + rob.header[1]));
  tape.take(5);
  rob.status = tape.counted();
  rob.checksum_type = tape.take();
  require(rob.checksum_type <= 2 && rob.header[2] == 7 + rob.status.size());
  if (rob.checksum_type != 0) require(tape.left() >= 1);
  rob.payload = tape.take(tape.left() - (rob.checksum_type != 0 ? 1 : 0));
  if (rob.checksum_type != 0) rob.checksum = tape.take();
  return rob;
}

inline Event event(const Words& words) {
  Event event;
  Tape tape(words);
  event.generic = tape.take(5);
  require(event.generic[0] == 0xaa1234aa && event.generic[1] <= words.size());
  const std::uint32_t major = event.generic[3] >> 16;
  require(major == 0x0500 || major == 0x0400);
  tape = Tape(Words(words.begin(), words.begin() + event.generic[1]));
  const std::size_t total = tape.left();
  tape.take(5);
  event.status = tape.counted();
  event.checksum_type = tape.take();
  event.specific = tape.take(major == 0x0500 ? 12 : 9);
  if (major == 0x0500) require(event.specific[10] <= 1);
  for (Words& list : event.lists) list = tape.counted();
  require(event.checksum_type <= 2 && event.generic[2] == total - tape.left());
  if (event.checksum_type != 0) require(tape.left() >= 1);
  event.payload = tape.take(tape.left() - (event.checksum_type != 0 ? 1 : 0));
  if (event.checksum_type != 0) event.checksum = tape.take();
  return event;
}

inline std::vector<Chunk> chunks(const Words& data) {
  std::vector<Chunk> chunks;
  Tape tape(data);
  while (tape.left() > 0) {
    Chunk chunk;
    chunk.word0 = tape.take();
    chunk.link_id = tape.take();
    std::uint64_t size = chunk.word0 & 0xffff;
    if (size == 0xffff) {
      size = tape.take();
    } else {
      require(size >= 8);
      size -= 8;
    }
    for (const std::uint32_t word : tape.take((size + 3) / 4)) {
      for (int b = 0; b < 4; ++b) chunk.bytes.push_back(static_cast<std::byte>(word >> (8 * b)));
    }
    for (std::size_t i = size; i < chunk.bytes.size(); ++i) require(chunk.bytes[i] == std::byte{0});
    chunk.bytes.resize(size);
    chunks.push_back(chunk);
  }
  return chunks;
}

inline std::uint32_t adler32(const Words& words) {
  std::uint64_t a = 1;
  std::uint64_t b = 0;
  for (const std::uint32_t word : words) {
    for (int i = 0; i < 4; ++i) {
      a = (a + (word >> (8 * i) & 0xff)) % 65521;
      b = (b + a) % 65521;
    }
  }
  return static_cast<std::uint32_t>(b << 16 | a);
}

}  // namespace rodeo::slow
