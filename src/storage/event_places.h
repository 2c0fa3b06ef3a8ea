// The offsets of the events in a file: found by reading it once, as far as needed, and stored in an index beside the file.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "formats/event_index.h"
#include "storage/event_file_reader.h"
#include "storage/index_file.h"

namespace rodeo::storage {

/// The places of one file in memory, which must outlive it. Accepts any bytes. One thread.
class EventPlaces {
 public:
  static formats::Decoded<EventPlaces> open(std::span<const std::byte> file);

  const formats::DecodedFileHeader& header() const { return reader_.header(); }

  /// True if event `i` exists; reads the file up to it.
  bool has(std::size_t i);
  /// The number of events: reads to the end.
  std::size_t count();
  /// A place that was found already: has() was true for it.
  const formats::EventPlace& operator[](std::size_t i) const { return places_[i]; }
  std::span<const formats::EventPlace> found() const { return places_; }

  /// The event of a data block; see EventFileReader::event().
  std::span<const std::byte> event(std::size_t i, std::vector<std::byte>& buffer) const;

  /// The end record, or empty if there is none; valid once has() was false.
  const std::optional<formats::FileEnd>& end() const { return end_; }
  const std::optional<formats::DecodeError>& damage() const { return damage_; }

  /// Continues with the same file after it has grown, after the last whole event.
  void go_on(std::span<const std::byte> file);

  /// Takes the places from the index of `path`, if it exists, is whole, and belongs to this file.
  bool load(const std::string& path);
  /// Stores the places for load(), if the file was closed. False if the file was not closed, or the index cannot be written:
  /// then the file is read again next time.
  bool keep(const std::string& path);

 private:
  EventPlaces(std::span<const std::byte> file, EventFileReader reader) : file_(file), reader_(std::move(reader)) {}
  std::optional<formats::IndexedFile> identity(const std::string& path) const;
  bool step();

  std::span<const std::byte> file_;
  EventFileReader reader_;
  std::vector<formats::EventPlace> places_;
  std::vector<std::byte> buffer_;
  std::optional<formats::FileEnd> end_;
  std::optional<formats::DecodeError> damage_;
  bool complete_ = false;
};

}  // namespace rodeo::storage
