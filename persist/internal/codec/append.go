package codec

import (
	"encoding/binary"
	"net/http"
	"time"

	"github.com/oncehttp/oncehttp/persist"
)

// appendLength writes the length of a body, and its checksum if it is outside.
// A body that is absent and one that is empty differ by a flag.
func appendLength(b, body []byte, outside bool) []byte {
	b = binary.AppendUvarint(b, uint64(len(body)))
	if outside {
		b = binary.LittleEndian.AppendUint32(b, Checksum(body))
	}
	return b
}

// appendTime keeps the instant to the nanosecond, neither zone nor monotonic
// reading. The zero time is an instant like any other.
func appendTime(b []byte, t time.Time) []byte {
	b = binary.AppendVarint(b, t.Unix())
	return binary.AppendUvarint(b, uint64(t.Nanosecond()))
}

// appendString appends the length of s, and s.
func appendString(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// appendBytes appends the length of s, and s.
func appendBytes(b, s []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// appendStrings appends the number of strings, and each of them.
func appendStrings(b []byte, list []string) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for _, s := range list {
		b = appendString(b, s)
	}
	return b
}

// appendHeader appends a header, its names in any order: nothing compares encoded
// records.
func appendHeader(b []byte, h http.Header) []byte {
	b = binary.AppendUvarint(b, uint64(len(h)))
	for name, values := range h {
		b = appendString(b, name)
		b = appendStrings(b, values)
	}
	return b
}

// appendEvidence appends the texts of an evidence, and its time.
func appendEvidence(b []byte, e *persist.Evidence) []byte {
	for _, s := range [...]string{e.Event, e.Type, e.By, e.Scheme, e.Digest} {
		b = appendString(b, s)
	}
	return appendTime(b, e.At)
}
