// Package sign signs each attempt of a request anew, and checks such signatures.
//
// An idempotency key makes an honest retry harmless. It does not stop an attacker who captured a request and sends it
// again, under its key once the server has forgotten it, or under another key at once. A signature does, if it covers
// the key and the body, and if it holds a timestamp and a nonce that a server accepts once. Both are fresh on each
// attempt, key and body are the same on each.
//
// Two kinds of signature are here:
//
//   - [Layout]: a text of the API's own making (timestamp, nonce, method, path, key, body, in any order), signed by
//     HMAC or by a private key, in headers of the API's own making. [WeChatPay] is one.
//   - [Message]: HTTP Message Signatures (RFC 9421) with Content-Digest (RFC 9530).
//
// The method Authorize of each gives the function for the field Authorize of oncehttp.Config, which is called before
// every send, also when another process resumes the operation. The method Verifier gives the function for the other
// side: a server, or the field Verify of mockserver.Config.
//
//	authorize, err := sign.Layout{
//		Key:     sign.HMAC(secret),
//		Text:    "{timestamp}\n{nonce}\n{method}\n{target}\n{key}\n{body}",
//		Headers: map[string]string{"X-Timestamp": "{timestamp}", "X-Nonce": "{nonce}", "X-Signature": "{signature}"},
//	}.Authorize()
//
// # The body
//
// A signer reads the body by GetBody of the request, and leaves Body alone, so that what is sent is unchanged. oncehttp
// sets GetBody for Authorize to the recorded bytes. A request with a body and without GetBody is an error, since a
// stream cannot be read twice.
//
// # Secrets
//
// A secret is given as bytes or as a function, and private keys as a [crypto.Signer]. They are kept in functions: fmt,
// log/slog and encoding/json print a [Key] as its algorithm and never as what it holds. No error of this package holds
// a secret, a signature or a body.
//
// # What it does not do
//
// It does not sign responses, and does not check those of a server. A [Message] covers whole fields and derived
// components without parameters, and no trailers. Nonces are remembered in memory, by one verifier: several servers
// need a store of their own between them.
package sign
