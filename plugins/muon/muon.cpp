// Registers extraction, integrity check and re-stamping of muon chunks, each as one plain function per chunk.
#include "muon.h"

RODEO_PLUGIN(registry) {
  registry.add_extractor({.name = "muon", .help = "16-bit L1 id and 12-bit BCID in the first four bytes"},
                         {.l1id_bits = 16, .has_bcid = true}, &muon::extract);
  registry.add_checker({.name = "muon_crc16", .help = "CRC-16 in the last two bytes"}, &muon::check);
  registry.add_restamp({.name = "muon", .help = "Writes L1 id, BCID and CRC-16 anew"}, &muon::restamp);
}
