#include "formats/event_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <span>

#include "rodeo/fragment.h"

namespace rodeo::formats {
namespace {

struct BitName {
  std::uint32_t bit;
  std::string_view name;
};

constexpr BitName kGeneric[] = {{0x1, "BCID mismatch"},   {0x2, "L1ID mismatch"},      {0x4, "time-out"},
                                {0x8, "data corruption"}, {0x10, "internal overflow"}, {0x20, "dummy fragment"}};

constexpr BitName kRobSpecific[] = {{0x1 << 16, "trigger type out of step"},   {0x2 << 16, "fragment size wrong"},
                                    {0x4 << 16, "data block error"},           {0x8 << 16, "control word error"},
                                    {0x10 << 16, "begin of fragment missing"}, {0x20 << 16, "end of fragment missing"},
                                    {0x40 << 16, "bad header marker"},         {0x80 << 16, "format error"},
                                    {0x100 << 16, "duplicate event"},          {0x200 << 16, "sequence error"},
                                    {0x400 << 16, "transmission error"},       {0x800 << 16, "truncated"},
                                    {0x1000 << 16, "short fragment"},          {0x2000 << 16, "fragment lost"},
                                    {0x4000 << 16, "fragment pending"},        {0x80000000, "discard mode"}};

constexpr BitName kRodSpecific[] = {{fragment_status::kLinksRemoved, "links removed"}};  // defined by Rodeo

constexpr BitName kEventSpecific[] = {{0x1 << 16, "L2 time-out"},
                                      {0x8 << 16, "HLTSV duplication warning"},
                                      {0x10 << 16, "L2 processing problem"},
                                      {kRobsMissing, "ROBs missing"},
                                      {0x100 << 16, "DCM processing time-out"},
                                      {0x200 << 16, "HLTPU time-out"},
                                      {0x400 << 16, "DCM duplication warning"},
                                      {0x800 << 16, "DCM recovered event"},
                                      {0x1000 << 16, "HLT processing problem"},
                                      {0x2000 << 16, "DCM forced accept"},
                                      {kHeaderNotProven, "header not proven"},
                                      {0x80000000, "partial event"}};

constexpr BitName kFelix[] = {{0x01, "truncated by firmware"},
                              {0x02, "truncated by software"},
                              {0x04, "marked malformed by firmware"},
                              {0x08, "marked malformed by software"},
                              {0x10, "CRC error"},
                              {0x20, "ended by time-out"},
                              {0x40, "busy"}};

constexpr BitName kRodeo[] = {{0x01, "truncated"}, {0x02, "corrupt"}, {0x04, "BCID mismatch"}};

// Moves the bits of a table from `bits` to `names`.
void move_names(std::uint32_t& bits, std::span<const BitName> table, std::vector<std::string>& names) {
  for (const BitName& entry : table) {
    if ((bits & entry.bit) == 0) continue;
    names.emplace_back(entry.name);
    bits &= ~entry.bit;
  }
}

void append_rest(std::uint32_t bits, std::vector<std::string>& names) {
  for (; bits != 0; bits &= bits - 1) names.push_back(fmt::format("bit {}", std::countr_zero(bits)));
}

std::vector<std::string> byte_names(std::uint32_t bits, std::span<const BitName> table) {
  std::vector<std::string> names;
  move_names(bits, table, names);
  append_rest(bits, names);
  return names;
}

struct Subdetectors {
  std::uint8_t first;
  std::uint8_t last;
  std::string_view name;
};

constexpr Subdetectors kSubdetectors[] = {
    {0x00, 0x00, "full event"},
    {0x01, 0x01, "offline"},
    {0x11, 0x11, "Pixel barrel"},
    {0x12, 0x12, "Pixel disk"},
    {0x13, 0x13, "Pixel B-layer"},
    {0x14, 0x14, "Pixel IBL"},
    {0x15, 0x15, "Pixel DBM"},
    {0x21, 0x24, "SCT"},
    {0x30, 0x30, "TRT ancillary"},
    {0x31, 0x34, "TRT"},
    {0x41, 0x4c, "LAr"},
    {0x50, 0x50, "Tile ancillary"},
    {0x51, 0x54, "Tile"},
    {0x60, 0x60, "muon ancillary"},
    {0x61, 0x64, "MDT"},
    {0x65, 0x66, "RPC"},
    {0x67, 0x68, "TGC"},
    {0x69, 0x6a, "CSC"},
    {0x6b, 0x6c, "NSW Micromegas"},
    {0x6d, 0x6e, "NSW sTGC"},
    {0x70, 0x70, "beam"},
    {0x71, 0x71, "L1Calo preprocessor"},
    {0x72, 0x73, "L1Calo CP"},
    {0x74, 0x75, "L1Calo JEP"},
    {0x76, 0x76, "MUCTPI"},
    {0x77, 0x77, "CTP"},
    {0x78, 0x78, "L2 supervisor"},
    {0x79, 0x79, "event builder"},
    {0x7a, 0x7a, "event output"},
    {0x7b, 0x7b, "L2"},
    {0x7c, 0x7c, "HLT"},
    {0x7f, 0x7f, "FTK"},
    {0x81, 0x81, "BCM"},
    {0x82, 0x82, "LUCID"},
    {0x83, 0x83, "ZDC"},
    {0x84, 0x84, "ALFA"},
    {0x85, 0x85, "AFP"},
    {0x91, 0x91, "L1Topo"},
    {0x92, 0x92, "calorimeter digital"},
    {0x93, 0x93, "FEX DAQ"},
    {0x94, 0x94, "FEX RoI"},
    {0xff, 0xff, "other"},
};

}  // namespace

std::string_view subdetector_name(std::uint8_t code) {
  const auto found = std::ranges::find_if(
      kSubdetectors, [code](const Subdetectors& entry) { return code >= entry.first && code <= entry.last; });
  return found == std::end(kSubdetectors) ? std::string_view{} : found->name;
}

std::vector<std::string> status_names(std::uint32_t status, FragmentKind kind) {
  std::vector<std::string> names;
  move_names(status, kGeneric, names);
  if (kind == FragmentKind::rod) move_names(status, kRodSpecific, names);
  if (kind == FragmentKind::rob) move_names(status, kRobSpecific, names);
  if (kind == FragmentKind::event) move_names(status, kEventSpecific, names);
  append_rest(status, names);
  return names;
}

std::vector<std::string> felix_status_names(std::uint8_t status) { return byte_names(status, kFelix); }
std::vector<std::string> rodeo_status_names(std::uint8_t status) { return byte_names(status, kRodeo); }

std::string run_type_name(std::uint32_t type) {
  const auto base = [&]() -> std::string_view {
    switch (type & ~run_type::kSimulation) {
      case run_type::kPhysics: return "physics";
      case run_type::kCalibration: return "calibration";
      case run_type::kCosmics: return "cosmics";
      case run_type::kTest: return "test";
      default: return "unknown";
    }
  };
  return fmt::format("{}{}", base(), (type & run_type::kSimulation) != 0 ? ", simulation" : "");
}

std::string_view checksum_name(ChecksumType type) {
  switch (type) {
    case ChecksumType::none: return "none";
    case ChecksumType::crc16_ccitt: return "CRC16-CCITT";
    case ChecksumType::adler32: return "Adler-32";
  }
  return "unknown";
}

std::string_view compression_name(Compression compression) { return compression == Compression::none ? "none" : "zlib"; }

std::string joined_or_ok(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "ok" : text;
}

}  // namespace rodeo::formats
