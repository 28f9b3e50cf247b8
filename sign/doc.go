// Package sign signs each attempt of a request anew, and verifies such signatures.
//
// An idempotency key makes an honest retry harmless. It does not stop an attacker with a captured request: it can be sent
// again under another key at once, or under its own after the server has forgotten it. A signature stops this, if it covers
// the key and the body, and contains a timestamp and a nonce that the server accepts once. Timestamp and nonce are new in
// each attempt; key and body stay the same.
//
// Two kinds of signature are here:
//
//   - [Layout]: a text of the API's own design (timestamp, nonce, method, path, key, body, in any order), signed by
//     HMAC or by a private key, in headers of the API's own design. [WeChatPay] is one.
//   - [Message]: HTTP Message Signatures (RFC 9421) with Content-Digest (RFC 9530).
//
// The method Authorize of each returns the function for the field Authorize of oncehttp.Config. The client calls it before
// every send, also when another process resumes the operation. The method Verifier returns the function for the other
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
// A signer reads the body by GetBody of the request, and does not use Body. oncehttp sets GetBody for Authorize to the
// recorded bytes. A request with a body and without GetBody is an error, since a stream cannot be read twice.
//
// # Secrets
//
// A secret is given as bytes or as a function, and a private key as a [crypto.Signer]. A [Key] keeps them in functions:
// fmt, log/slog and encoding/json print its algorithm at most. No error of this package contains a secret, a signature or
// a body.
//
// # Limits
//
// Responses are neither signed nor verified. A [Message] covers whole fields and derived components without parameters,
// and no trailers. One verifier keeps its nonces in memory: several servers need a common store of their own.
package sign
