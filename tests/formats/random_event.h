// Random events for property tests, made by the encoders under test.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "formats/encode_event.h"
#include "formats/rod_data.h"

namespace rodeo::test {

class RandomEvents {
 public:
  explicit RandomEvents(std::uint32_t seed) : random_(seed) {}

  std::uint32_t below(std::uint32_t n) { return std::uniform_int_distribution<std::uint32_t>(0, n - 1)(random_); }
  std::uint32_t word() { return static_cast<std::uint32_t>(random_()); }

  std::vector<std::byte> bytes(std::size_t n) {
    std::vector<std::byte> out(n);
    for (std::byte& b : out) b = static_cast<std::byte>(random_());
    return out;
  }

  std::vector<std::uint32_t> words(std::size_t n) {
    std::vector<std::uint32_t> out(n);
    for (std::uint32_t& w : out) w = word();
    return out;
  }

  std::vector<std::byte> rod_data() {
    std::vector<std::byte> data;
    for (std::uint32_t n = below(6); n > 0; --n) {
      const ChunkHeader header{.felix_status = static_cast<std::uint8_t>(word()),
                               .rodeo_status = static_cast<std::uint8_t>(word()),
                               .link_id = word()};
      formats::append_chunk_record(data, header, bytes(below(20) == 0 ? 65520 + below(20) : below(50)));
    }
    return data;
  }

  formats::RodHeader rod_header() {
    return {.minor_version = static_cast<std::uint16_t>(word()),
            .source_id = {word()},
            .run_number = word() & 0x7fffffff,
            .l1id = {word()},
            .bcid = below(3564),
            .trigger_type = below(256),
            .detector_event_type = word()};
  }

  std::vector<std::byte> rod() {
    return formats::encode_rod(rod_header(), words(below(5)), rod_data(), static_cast<formats::StatusPosition>(below(2)));
  }

  std::vector<std::byte> rob() {
    return formats::encode_rob({.source_id = {word()}, .status = words(below(4)), .checksum_type = checksum()}, rod());
  }

  std::vector<std::byte> robs() {
    std::vector<std::byte> out;
    for (std::uint32_t n = below(4); n > 0; --n) formats::append_bytes(out, rob());
    return out;
  }

  formats::FullEventHeader event_header() {
    formats::FullEventHeader header;
    header.source_id = {word()};
    header.bc_time_s = word();
    header.bc_time_ns = below(1000000000);
    header.global_id = std::uint64_t{word()} << 32 | word();
    header.run_type = word();
    header.run_number = word();
    header.lumi_block = below(0x10000);
    header.l1id = {word()};
    header.bcid = below(4096);
    header.trigger_type = below(256);
    header.checksum_type = checksum();
    header.compression = static_cast<formats::Compression>(below(2));
    header.status = words(below(3));
    header.l1_info = words(below(4));
    header.l2_info = words(below(4));
    header.hlt_info = words(below(4));
    header.stream_tags = words(below(9));
    return header;
  }

  std::vector<std::byte> event() { return formats::encode_full_event(event_header(), robs()); }

 private:
  formats::ChecksumType checksum() { return below(2) == 0 ? formats::ChecksumType::none : formats::ChecksumType::adler32; }

  std::mt19937 random_;
};

}  // namespace rodeo::test
