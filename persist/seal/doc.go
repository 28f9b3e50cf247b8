// Package seal encrypts what a journal keeps, for every journal alike:
//
//	sealer, err := seal.New(seal.Config{Keys: []seal.Key{{ID: "2026-07", Secret: secret}}})
//	file, err := bolt.Open("payments.db", bolt.Options{})
//	journal, err := sealer.Journal(ctx, file)
//	client, err := oncehttp.New(oncehttp.Config{Journal: journal})
//
// [ReadFile] takes the keys from a file. Closing the sealed journal closes the one below.
//
// # What is sealed, and what is not
//
// Sealed, with AES-256-GCM: method, target, headers and body of the request, the wire key or token, the kept fields, the digests of credentials,
// the answer, the attempts and the note. In clear: account, business key, origin, state, times, counters, the lease, and the
// status of the answer. Config.HashKey puts a keyed hash in the place of the business key. In the place of the request's
// fingerprint is its HMAC under a key of its own, so that whoever reads the file cannot test guesses at a request.
//
// Whoever begins the first record of a journal decides for all, whether it is sealed and with which HashKey: others are refused
// (persist.ErrSealed). In one process, all users of a journal have the same keys in the same order; to change them, close the journal and
// open it anew.
//
// Sealing keeps secrets. Each sealed part is bound to its record (account, key and time of creation) and to its field, so
// that a part that was changed, cut off, or put in the place of another one is persist.ErrCorrupt, and nothing is sent or
// overwritten. It is no protection from somebody who can write to the journal: what is in clear can be changed, and a
// whole record can be put back to what it was.
//
// # Keys
//
// Each part names its key. The first key of Config.Keys seals, all of them unseal. So a key is replaced by putting a new
// one before it; where several processes share the journal, first give the new key to all of them, behind the current one.
// The old key is needed until no record is left that it has sealed. A record whose key is missing or another one is an error that
// names the key and matches persist.ErrSealed; the others are not affected. A journal whose oldest record was begun under a key that is missing is
// not opened; a newer key that only other processes have is no reason.
//
// Every record has a key of its own, derived by HKDF-SHA256 from the one that was given, and every part a random nonce of 96 bits. So the bound
// of 2^32 messages under one key is one on the changes of a single record, and no journal reaches it.
//
// # Journals that are not sealed
//
// Without keys, a sealed record is an error that matches persist.ErrSealed, and nothing is sent, compared or settled. With
// keys, a record that is not sealed is such an error, too, unless Config.AcceptPlain is set.
package seal
