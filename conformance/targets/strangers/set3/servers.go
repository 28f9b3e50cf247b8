// Package set3 has servers by one author; see conformance/targets/strangers/README.md. Their
// subjects are framing, connections, proxies, header fields, and values in JSON. Broken ones have
// one deliberate fault.
package set3

import "github.com/oncehttp/oncehttp/conformance/targets/strangers"

// Servers lists the servers of this package, to test the conformance suite. It must find the deliberate fault that Wrong describes; a server without
// Wrong is correct, and must pass.
func Servers() []strangers.Server {
	return []strangers.Server{
		{Name: "put-resent-when-slow", New: newResending,
			Wrong: "a PUT that is at work for 300 ms is sent to the service once more, and has two effects"},
		{Name: "quoted-key-lowered", New: newQuotedLowered,
			Wrong: "keys in quotes that differ in the case of a letter are one key"},
		{Name: "float-numbers", New: newFloats,
			Wrong: "another number is confirmed with the first outcome if it is the same as a float of 64 bits: 9007199254740993 and 9007199254740992"},
		{Name: "empty-members-dropped", New: newEmptyDropped,
			Wrong: "a member that is false, 0, an empty text, list or object is taken for an absent one, and confirmed with the first outcome"},
		{Name: "cut-large-upload-locks", New: newCutUpload,
			Wrong: "a key stays locked if the upload of a body over 16 KB was cut off"},
		{Name: "closing-not-kept", New: newClosing,
			Wrong: "the outcome of a request with Connection: close is not kept, and a repeat is executed"},
		{Name: "vary-accept", New: newVaryAccept,
			Wrong: "a repeat with another Accept is executed"},
		{Name: "look-before-body", New: newLookFirst,
			Wrong: "of two equal requests whose uploads overlap, both are executed"},
		{Name: "hang-up-frees-key", New: newHangUp,
			Wrong: "a client that hangs up during the work frees its key, while the work goes on and has its effect"},
		{Name: "expect-claims-late", New: newExpecting,
			Wrong: "the key of a first with Expect: 100-continue is taken when that has ended, and a repeat before is executed"},

		{Name: "exact-values", New: newExactValues},
		{Name: "charset-counts", New: newCharsetCounts},
		{Name: "replays-in-pieces", New: newPieces},
		{Name: "fifth-503", New: newFifth},
		{Name: "detached-behind-a-proxy", New: newDetached},
	}
}
