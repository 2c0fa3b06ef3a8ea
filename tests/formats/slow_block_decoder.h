// The slow twin of BlockDecoder: the same rules (docs/reference/formats/felix-blocks.md, "Reading"), byte by byte, sharing
// no code with the product.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace slow {

struct Chunk {
  std::vector<std::uint8_t> bytes;
  unsigned status = 0;
  bool operator==(const Chunk&) const = default;
};

struct Decoded {
  std::map<unsigned, std::vector<Chunk>> chunks;  // by E-link, in order
  std::map<std::string, std::uint64_t> counters;  // without zeros
};

struct Setup {
  bool wide_trailers = false;
  unsigned marker = 0xabcd;
  std::size_t block_bytes = 1024;
  std::size_t max_chunk_bytes = 65536;
  std::vector<std::uint16_t> elinks;
};

class Decoder {
 public:
  explicit Decoder(Setup setup) : setup_(std::move(setup)) {}

  Decoded decode(const std::uint8_t* data, std::size_t size) {
    for (std::size_t at = 0; at + setup_.block_bytes <= size; at += setup_.block_bytes) block(data + at);
    for (auto& [elink, open] : open_) {
      result_.counters["unfinished"] += 1;
      emit_open(elink, open, 0x02);
    }
    for (auto it = result_.counters.begin(); it != result_.counters.end();)
      it = it->second == 0 ? result_.counters.erase(it) : ++it;
    return result_;
  }

 private:
  struct Piece {
    unsigned type, flags;
    std::vector<std::uint8_t> bytes;
  };

  void block(const std::uint8_t* b) {
    auto& n = result_.counters;
    n["blocks"] += 1;
    if (b[2] != setup_.marker % 256 || b[3] != setup_.marker / 256) {
      n["bad_marker"] += 1;
      return;
    }
    const unsigned elink = b[0] + (b[1] % 8) * 256;
    const unsigned sequence = b[1] / 8;
    bool wanted = false;
    for (const unsigned e : setup_.elinks) wanted = wanted || e == elink;
    if (!wanted) {
      n["unmapped_blocks"] += 1;
      return;
    }
    if (last_.contains(elink) && (last_[elink] + 1) % 32 != sequence) {
      n["sequence_gaps"] += 1;
      n["lost_blocks"] += (sequence + 64 - last_[elink] - 1) % 32;
      if (close(elink, 0x02)) n["cut_by_gap"] += 1;
    }
    last_[elink] = sequence;

    std::vector<Piece> pieces;
    unsigned extra = 0;
    if (!split(b, pieces)) {
      n["bad_trailer"] += 1;
      extra = 0x08;
      close(elink, 0x0a);
    }
    for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece) take(elink, *piece, extra);
  }

  // Pieces from the end of the block; false if they do not end at the header.
  bool split(const std::uint8_t* b, std::vector<Piece>& pieces) {
    const long word = setup_.wide_trailers ? 4 : 2;
    long end = static_cast<long>(setup_.block_bytes);
    while (end > 4) {
      Piece piece;
      long length = 0;
      if (setup_.wide_trailers) {
        length = b[end - 4] + 256 * b[end - 3];
        piece.type = b[end - 1] / 32;
        piece.flags = (b[end - 1] & 16 ? 0x01 : 0) + (b[end - 1] & 8 ? 0x04 : 0) + (b[end - 1] & 4 ? 0x10 : 0) +
                      (b[end - 1] & 2 ? 0x40 : 0);
      } else {
        length = b[end - 2] + 256 * (b[end - 1] & 3);
        piece.type = b[end - 1] / 32;
        piece.flags = (b[end - 1] & 16 ? 0x01 : 0) + (b[end - 1] & 8 ? 0x04 : 0) + (b[end - 1] & 4 ? 0x10 : 0);
      }
      if (piece.type == 0 || piece.type == 7) length = 0;
      long begin = end - word - length;
      while (begin % word != 0) --begin;
      if (begin < 4) return false;
      for (long i = 0; i < length; ++i) piece.bytes.push_back(b[begin + i]);
      pieces.push_back(piece);
      end = begin;
    }
    return end == 4;
  }

  void take(unsigned elink, const Piece& piece, unsigned extra) {
    auto& n = result_.counters;
    const unsigned status = piece.flags | extra;
    switch (piece.type) {
      case 0: n["null_trailers"] += 1; return;
      case 7: n["out_of_band"] += 1; return;
      case 6:
        n["undefined_trailer"] += 1;
        close(elink, 0x0a);
        return;
      case 5:
        if ((piece.flags & 0x01) == 0) {
          n["timeouts"] += 1;
          return;
        }
        n["given_up"] += 1;
        open_[elink];
        join(elink, piece, status | 0x20);
        close(elink, 0);
        return;
      case 1:
      case 3:
        if (close(elink, 0x02)) n["unterminated"] += 1;
        open_[elink];
        join(elink, piece, status);
        if (piece.type == 3) {
          n["split_chunks"] -= 1;
          close(elink, 0);
        }
        return;
      default:
        if (!open_.contains(elink)) {
          n[!begun_.contains(elink) ? "before_join" : piece.type == 2 ? "orphan_last" : "orphan_middle"] += 1;
          return;
        }
        join(elink, piece, status);
        if (piece.type == 2) close(elink, 0);
    }
  }

  void join(unsigned elink, const Piece& piece, unsigned status) {
    begun_.insert(elink);
    Chunk& chunk = open_[elink];
    chunk.bytes.insert(chunk.bytes.end(), piece.bytes.begin(), piece.bytes.end());
    chunk.status |= status;
  }

  bool close(unsigned elink, unsigned status) {
    const auto it = open_.find(elink);
    if (it == open_.end()) return false;
    emit_open(elink, it->second, status);
    open_.erase(it);
    return true;
  }

  void emit_open(unsigned elink, Chunk chunk, unsigned status) {
    auto& n = result_.counters;
    chunk.status |= status;
    if (chunk.bytes.size() > setup_.max_chunk_bytes) {
      n["oversize"] += 1;
      n["cut_bytes"] += chunk.bytes.size() - setup_.max_chunk_bytes;
      chunk.bytes.resize(setup_.max_chunk_bytes);
      chunk.status |= 0x02;
    }
    n["split_chunks"] += 1;
    n["chunks"] += 1;
    n["chunk_bytes"] += chunk.bytes.size();
    if (chunk.status & 0x01) n["firmware_truncated"] += 1;
    if (chunk.status & 0x04) n["firmware_malformed"] += 1;
    if (chunk.status & 0x10) n["firmware_crc"] += 1;
    if (chunk.status & 0x40) n["busy"] += 1;
    result_.chunks[elink].push_back(chunk);
  }

  Setup setup_;
  std::map<unsigned, unsigned> last_;
  std::map<unsigned, Chunk> open_;
  std::set<unsigned> begun_;
  Decoded result_;
};

}  // namespace slow
