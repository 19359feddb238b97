// Networks over sequences, as exporters write them: with If where a shape or data choose, with Scan where
// steps follow each other.
#pragma once

#include "tests/models/network_writer.h"
#include "tests/models/networks.h"

namespace tuner::testing {

// A line of text as an image 32 high: which of 96 letters stands at each place of its width.
void write_ocr(NetworkWriter& w, const NetworkOptions& options);
// Frames of 80 bands of sound: which of 32 sounds each fourth frame is.
void write_speech_encoder(NetworkWriter& w, const NetworkOptions& options);

}  // namespace tuner::testing
