// Where the events of a file lie: found by walking it once, as far as is asked for, and kept in an index beside it for the next time.
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

/// The places of one file in memory, which must outlive it. Survives any bytes. One thread.
class EventPlaces {
 public:
  static formats::Decoded<EventPlaces> open(std::span<const std::byte> file);

  const formats::DecodedFileHeader& header() const { return reader_.header(); }

  /// Whether there is an event `i`; the file is walked so far.
  bool has(std::size_t i);
  /// All of them: walks to the end.
  std::size_t count();
  /// Of those found so far, for which has() was true.
  const formats::EventPlace& operator[](std::size_t i) const { return places_[i]; }
  std::span<const formats::EventPlace> found() const { return places_; }

  /// The data block; see EventFileReader::event().
  std::span<const std::byte> event(std::size_t i, std::vector<std::byte>& buffer) const;

  /// Once has() was false: the end record, or why there is none.
  const std::optional<formats::FileEnd>& end() const { return end_; }
  const std::optional<formats::DecodeError>& damage() const { return damage_; }

  /// The same file, which has grown: goes on where the last whole event ended.
  void go_on(std::span<const std::byte> file);

  /// Takes the places from the index of `path`, if that is there, whole, and of this very file.
  bool load(const std::string& path);
  /// Keeps them for load(), if the file was closed. False if it was not, or the directory takes no file: nothing is lost then but time.
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
