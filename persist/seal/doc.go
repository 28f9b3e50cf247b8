// Package seal encrypts the records of a journal, for every journal alike:
//
//	sealer, err := seal.New(seal.Config{Keys: []seal.Key{{ID: "2026-07", Secret: secret}}})
//	file, err := bolt.Open("payments.db", bolt.Options{})
//	journal, err := sealer.Journal(ctx, file)
//	client, err := oncehttp.New(oncehttp.Config{Journal: journal})
//
// [ReadFile] takes the keys from a file. Closing the sealed journal closes the one below.
//
// # Sealed parts, and parts in clear
//
// Sealed, with AES-256-GCM: method, target, headers and body of the request, its trace, the names of omitted parts, the
// wire key or token, where the key travels, the kept fields, the digests and names of credentials, the headers naming the
// keys' owner, the profile, the recipe and the facts, Replaces, ReplacedBy, Credential, Region, the answer, the attempts, the acts, the evidence and the note.
//
// In clear: account, business key, origin, state, hold reason and effect; all times and counters, the window, the times of
// keeping and the pauses; whether the request is gone, and whether an answer was kept whole; the lease; the flags, such as whether the key was generated, protects, or was told; the status and
// the time of the answer; the ids of the seal keys. The needs of a record are sealed, but equal needs look alike.
// Config.HashKey puts a keyed hash in the place of the business key. In the place of the request's fingerprint is its HMAC
// under a key of its own, so a reader of the file cannot test guesses at a request.
//
// The first user decides for all: sealed, and with which HashKey, by opening the journal; in clear by its first record. Others are refused
// (persist.ErrSealed). In one process, all users of a journal have the same keys in the same order; to change them,
// close the journal and open it anew.
//
// Sealing keeps secrets. Each sealed part is bound to its record (account, key and time of creation) and to its field.
// So a part is persist.ErrCorrupt if it was changed, cut off, or put in the place of another one, and nothing is sent
// or overwritten. The same holds for the parts in clear that only users with the keys change: state, hold reason,
// effect, end, status, counters of attempts and sends, first send, and flags. Each change seals a copy of them, with
// digests of the other parts. One exception: without the keys an operation can be abandoned, since that proves nothing.
//
// It is no protection from a person with write access to the journal, who can put a whole record back to an earlier
// version, remove it, or change the data written by journals themselves: docs/security.md lists them.
//
// # Records without their text
//
// A sweep has no keys, and takes the text out of a record with everything that is sealed (persist.Record.KeepText). So the end of an operation is
// sealed once more (persist.Record.SealedEnd): a MAC of 16 bytes over the digests of account and key, the state, the effect, the status, the time
// of the end and the scopes, and the encrypted scopes. Whoever names account and key gets persist.ErrSealed if one of these was changed, or if the key is
// missing. A listing of persist/postgres or persist/mysql that does not name both shows such a record unchecked.
//
// # Keys
//
// Each part names its key. The first key of Config.Keys seals, all of them unseal. So a key is replaced by putting a
// new one before it. If several processes share the journal, first give the new key to all of them, behind the current
// one. The old key is needed until no record sealed by it is left. If a record's key is missing or has another secret,
// the error names the key and matches persist.ErrSealed; other records are not affected. A journal is not opened if its
// oldest record was begun under a missing key. A newer key of other processes alone is no reason.
//
// Every record has a key of its own, derived by HKDF-SHA256 from the given one, and every part a random nonce of 96
// bits. So the bound of 2^32 messages under one key is one on the changes of a single record, and no journal reaches
// it.
//
// # Journals without a seal
//
// Without keys, a sealed record is an error matching persist.ErrSealed, and nothing is sent, compared or settled. With
// keys, an unsealed record is such an error, too, unless Config.AcceptPlain is set.
package seal
