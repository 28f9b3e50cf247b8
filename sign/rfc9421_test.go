package sign

import (
	"bufio"
	"crypto"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"net/http"
	"strings"
	"testing"

	"github.com/dunglas/httpsfv"
)

// The examples of RFC 9421 (https://www.rfc-editor.org/rfc/rfc9421.html): the keys of appendix B.1, the messages and
// signatures of appendix B.2 and B.4 and of section 4.3. Lines that the RFC folds are joined, as RFC 8792 says.

// The public keys of B.1.1 to B.1.4, the private key of B.1.4, and the shared secret of B.1.5. All are published for
// tests.
const (
	rfcRSAPublic = `-----BEGIN RSA PUBLIC KEY-----
MIIBCgKCAQEAhAKYdtoeoy8zcAcR874L8cnZxKzAGwd7v36APp7Pv6Q2jdsPBRrw
WEBnez6d0UDKDwGbc6nxfEXAy5mbhgajzrw3MOEt8uA5txSKobBpKDeBLOsdJKFq
MGmXCQvEG7YemcxDTRPxAleIAgYYRjTSd/QBwVW9OwNFhekro3RtlinV0a75jfZg
kne/YiktSvLG34lw2zqXBDTC5NHROUqGTlML4PlNZS5Ri2U4aCNx2rUPRcKIlE0P
uKxI4T+HIaFpv8+rdV6eUgOrB2xeI1dSFFn/nnv5OoZJEIB+VmuKn3DCUcCZSFlQ
PSXSfBDiUGhwOw76WuSSsf1D4b/vLoJ10wIDAQAB
-----END RSA PUBLIC KEY-----`
	rfcPSSPublic = `-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAr4tmm3r20Wd/PbqvP1s2
+QEtvpuRaV8Yq40gjUR8y2Rjxa6dpG2GXHbPfvMs8ct+Lh1GH45x28Rw3Ry53mm+
oAXjyQ86OnDkZ5N8lYbggD4O3w6M6pAvLkhk95AndTrifbIFPNU8PPMO7OyrFAHq
gDsznjPFmTOtCEcN2Z1FpWgchwuYLPL+Wokqltd11nqqzi+bJ9cvSKADYdUAAN5W
Utzdpiy6LbTgSxP7ociU4Tn0g5I6aDZJ7A8Lzo0KSyZYoA485mqcO0GVAdVw9lq4
aOT9v6d+nb4bnNkQVklLQ3fVAvJm+xdDOp9LCNCN48V2pnDOkFV6+U9nV5oyc6XI
2wIDAQAB
-----END PUBLIC KEY-----`
	rfcP256Public = `-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEqIVYZVLCrPZHGHjP17CTW0/+D9Lf
w0EkjqF7xB4FivAxzic30tMM4GF+hR6Dxh71Z50VGGdldkkDXZCnTNnoXQ==
-----END PUBLIC KEY-----`
	rfcEd25519Public = `-----BEGIN PUBLIC KEY-----
MCowBQYDK2VwAyEAJrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs=
-----END PUBLIC KEY-----`
	rfcEd25519Private = `-----BEGIN PRIVATE KEY-----
MC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF
-----END PRIVATE KEY-----`
	rfcSecret = "uzvJfB4u3N0Jy4T7NZ75MDVcr8zSTInedJtkgcu46YW4XByzNJjxBdtjUkdJPBtbmHhIDi6pcl8jsasjlTMtDQ=="
)

const rfcDigest = "sha-512=:WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm+AbwAgBWnrIiYllu7BNNyealdVLvRwEmTHWXvJwew==:"

// rfcRequest is the message test-request of B.2.
const rfcRequest = "POST /foo?param=Value&Pet=dog HTTP/1.1\r\n" +
	"Host: example.com\r\n" +
	"Date: Tue, 20 Apr 2021 02:07:55 GMT\r\n" +
	"Content-Type: application/json\r\n" +
	"Content-Digest: " + rfcDigest + "\r\n" +
	"Content-Length: 18\r\n\r\n" + `{"hello": "world"}`

// rfcProxied is the message of section 4.3 as the proxy sends it on.
const rfcProxied = "POST /foo?param=Value&Pet=dog HTTP/1.1\r\n" +
	"Host: origin.host.internal.example\r\n" +
	"Date: Tue, 20 Apr 2021 02:07:56 GMT\r\n" +
	"Content-Type: application/json\r\n" +
	"Content-Digest: " + rfcDigest + "\r\n" +
	"Content-Length: 18\r\n" +
	"Forwarded: for=192.0.2.123;host=example.com;proto=https\r\n\r\n" + `{"hello": "world"}`

// rfcTransformed is a message of B.4, with the header Accept in two lines.
const rfcTransformed = "GET /demo?name1=Value1&Name2=value2 HTTP/1.1\r\n" +
	"Host: example.org\r\n" +
	"Date: Fri, 15 Jul 2022 14:24:55 GMT\r\n" +
	"Accept: application/json\r\n" +
	"Accept: */*\r\n\r\n"

// rfcExample is a signature of the RFC.
type rfcExample struct {
	section          string
	key              Key
	request          string // as it is on the wire
	label            string
	input, signature string // the values of the fields, without the label
	base             string // without the line of the parameters
}

func rfcExamples(t *testing.T) []rfcExample {
	pss := rfcKey(t, RSAPSSSHA512, rfcPSSPublic)
	p256 := rfcKey(t, ECDSAP256SHA256, rfcP256Public)
	secret, err := base64.StdEncoding.DecodeString(rfcSecret)
	if err != nil {
		t.Fatal(err)
	}
	const date, authorityLine, typeLine = `"date": Tue, 20 Apr 2021 02:07:55 GMT`, `"@authority": example.com`, `"content-type": application/json`
	const digestLine, lengthLine = `"content-digest": ` + rfcDigest, `"content-length": 18`
	lines := func(all ...string) string { return strings.Join(all, "\n") }
	return []rfcExample{
		{"B.2.1", pss, rfcRequest, "sig-b21", `();created=1618884473;keyid="test-key-rsa-pss";nonce="b3k2pp5k7z-50gnwp.yemd"`,
			"d2pmTvmbncD3xQm8E9ZV2828BjQWGgiwAaw5bAkgibUopemLJcWDy/lkbbHAve4cRAtx31Iq786U7it++wgGxbtRxf8Udx7zFZsckzXaJMkA7ChG52eSkFxykJeNqsrWH5S+oxNFlD4dzVuwe8DhTSja8xxbR/Z2cOGdCbzR72rgFWhzx2VjBqJzsPLMIQKhO4DGezXehhWwE56YCE+O6c0mKZsfxVrogUvA4HELjVKWmAvtl6UnCh8jYzuVG5WSb/QEVPnP5TmcAnLH1g+s++v6d4s8m0gCw1fV5/SITLq9mhho8K3+7EPYTU8IU1bLhdxO5Nyt8C8ssinQ98Xw9Q==",
			""},
		{"B.2.3", pss, rfcRequest, "sig-b23", `("date" "@method" "@path" "@query" "@authority" "content-type" "content-digest" "content-length");created=1618884473;keyid="test-key-rsa-pss"`,
			"bbN8oArOxYoyylQQUU6QYwrTuaxLwjAC9fbY2F6SVWvh0yBiMIRGOnMYwZ/5MR6fb0Kh1rIRASVxFkeGt683+qRpRRU5p2voTp768ZrCUb38K0fUxN0O0iC59DzYx8DFll5GmydPxSmme9v6ULbMFkl+V5B1TP/yPViV7KsLNmvKiLJH1pFkh/aYA2HXXZzNBXmIkoQoLd7YfW91kE9o/CCoC1xMy7JA1ipwvKvfrs65ldmlu9bpG6A9BmzhuzF8Eim5f8ui9eH8LZH896+QIF61ka39VBrohr9iyMUJpvRX2Zbhl5ZJzSRxpJyoEZAFL2FUo5fTIztsDZKEgM4cUA==",
			lines(date, `"@method": POST`, `"@path": /foo`, `"@query": ?param=Value&Pet=dog`, authorityLine, typeLine, digestLine, lengthLine)},
		{"B.2.5", HMAC(secret), rfcRequest, "sig-b25", `("date" "@authority" "content-type");created=1618884473;keyid="test-shared-secret"`,
			"pxcQw6G3AjtMBQjwo8XzkZf/bws5LelbaMk5rGIGtE8=", lines(date, authorityLine, typeLine)},
		{"B.2.6", rfcPrivate(t), rfcRequest, "sig-b26", `("date" "@method" "@path" "@authority" "content-type" "content-length");created=1618884473;keyid="test-key-ed25519"`,
			"wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu4A0w6vuQv5lIp5WPpBKRCw==",
			lines(date, `"@method": POST`, `"@path": /foo`, authorityLine, typeLine, lengthLine)},
		{"B.4", rfcKey(t, Ed25519, rfcEd25519Public), rfcTransformed, "transform", `("@method" "@path" "@authority" "accept");created=1618884473;keyid="test-key-ed25519"`,
			"ZT1kooQsEHpZ0I1IjCqtQppOmIqlJPeo7DHR3SoMn0s5JZ1eRGS0A+vyYP9t/LXlh5QMFFQ6cpLt2m0pmj3NDA==",
			lines(`"@method": GET`, `"@path": /demo`, `"@authority": example.org`, `"accept": application/json, */*`)},
		{"4.3, the client", p256, rfcRequest, "sig1", `("@method" "@authority" "@path" "content-digest" "content-type" "content-length");created=1618884475;keyid="test-key-ecc-p256"`,
			"X5spyd6CFnAG5QnDyHfqoSNICd+BUP4LYMz2Q0JXlb//4Ijpzp+kve2w4NIyqeAuM7jTDX+sNalzA8ESSaHD3A==",
			lines(`"@method": POST`, authorityLine, `"@path": /foo`, digestLine, typeLine, lengthLine)},
		{"4.3, the proxy", rfcKey(t, RSAPKCS1SHA256, rfcRSAPublic), rfcProxied, "proxy_sig",
			`("@method" "@authority" "@path" "content-digest" "content-type" "content-length" "forwarded");created=1618884480;keyid="test-key-rsa";alg="rsa-v1_5-sha256";expires=1618884540`,
			"S6ZzPXSdAMOPjN/6KXfXWNO/f7V6cHm7BXYUh3YD/fRad4BCaRZxP+JH+8XY1I6+8Cy+CM5g92iHgxtRPz+MjniOaYmdkDcnL9cCpXJleXsOckpURl49GwiyUpZ10KHgOEe11sx3G2gxI8S0jnxQB+Pu68U9vVcasqOWAEObtNKKZd8tSFu7LB5YAv0RAGhB8tmpv7sFnIm9y+7X5kXQfi8NMaZaA8i2ZHwpBdg7a6CMfwnnrtflzvZdXAsD3LH2TwevU+/PBPv0B6NMNk93wUs/vfJvye+YuI87HU38lZHowtznbLVdp770I6VHR6WfgS9ddzirrswsE1w5o0LV/g==",
			lines(`"@method": POST`, `"@authority": origin.host.internal.example`, `"@path": /foo`, digestLine, typeLine, lengthLine, `"forwarded": for=192.0.2.123;host=example.com;proto=https`)},
	}
}

// rfcKey reads a public key of appendix B.1.
func rfcKey(t *testing.T, algorithm Algorithm, text string) Key {
	t.Helper()
	block, _ := pem.Decode([]byte(text))
	var public crypto.PublicKey
	var err error
	if block.Type == "RSA PUBLIC KEY" {
		public, err = x509.ParsePKCS1PublicKey(block.Bytes)
	} else {
		public, err = x509.ParsePKIXPublicKey(block.Bytes)
	}
	if err != nil {
		t.Fatal(err)
	}
	key, err := PublicKey(algorithm, public)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// rfcPrivate reads the private key of B.1.4.
func rfcPrivate(t *testing.T) Key {
	t.Helper()
	block, _ := pem.Decode([]byte(rfcEd25519Private))
	private, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	key, err := PrivateKey(Ed25519, private.(crypto.Signer))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// received is a request as a server of net/http reads it.
func received(t *testing.T, wire string) *http.Request {
	t.Helper()
	req, err := http.ReadRequest(bufio.NewReader(strings.NewReader(wire)))
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// TestRFC9421Examples: each example's fields are found under their label, the signature base is made of the request as
// a server reads it, and is the RFC's, and the RFC's signature is good over it, and over no other base.
func TestRFC9421Examples(t *testing.T) {
	t.Parallel()
	for _, x := range rfcExamples(t) {
		t.Run(x.section, func(t *testing.T) {
			t.Parallel()
			req := received(t, x.request)
			req.Header.Set("Signature-Input", `other=();created=1, `+x.label+"="+x.input)
			req.Header.Add("Signature", "other=:AAAA:")
			req.Header.Add("Signature", x.label+"=:"+x.signature+":")
			input, signature, err := (&Message{Label: x.label}).signatureOf(req)
			if err != nil {
				t.Fatal(err)
			}
			base, err := signatureBase(req, input)
			if err != nil {
				t.Fatal(err)
			}
			want := `"@signature-params": ` + x.input
			if x.base != "" {
				want = x.base + "\n" + want
			}
			if base != want {
				t.Errorf("the signature base is\n%s\nwant\n%s", base, want)
			}
			if err := x.key.verify([]byte(base), signature); err != nil {
				t.Errorf("the signature: %v", err)
			}
			if x.key.verify([]byte(base+" "), signature) == nil {
				t.Error("the signature is good over another base")
			}
			signature[0] ^= 1
			if x.key.verify([]byte(base), signature) == nil {
				t.Error("another signature is good")
			}
		})
	}
}

// TestRFC9421Signs: where an algorithm gives one signature only, this package makes the RFC's.
func TestRFC9421Signs(t *testing.T) {
	t.Parallel()
	signed := 0
	for _, x := range rfcExamples(t) {
		if x.key.sign == nil {
			continue
		}
		signed++
		signature, err := x.key.sign([]byte(x.base + "\n" + `"@signature-params": ` + x.input))
		if got := base64.StdEncoding.EncodeToString(signature); err != nil || got != x.signature {
			t.Errorf("%s: %s, %v; want %s", x.section, got, err, x.signature)
		}
	}
	if signed != 2 {
		t.Errorf("%d examples were signed, want those of B.2.5 and B.2.6", signed)
	}
}

// TestRFC9421KeyExamples: the signatures of B.2.2, which covers a component with a parameter, and of B.2.4, on a
// response, are good over the bases that the RFC prints. A request cannot be held to either here.
func TestRFC9421KeyExamples(t *testing.T) {
	t.Parallel()
	for section, x := range map[string]struct {
		key             Key
		base, signature string
	}{
		"B.2.2": {rfcKey(t, RSAPSSSHA512, rfcPSSPublic), `"@authority": example.com
"content-digest": ` + rfcDigest + `
"@query-param";name="Pet": dog
"@signature-params": ("@authority" "content-digest" "@query-param";name="Pet");created=1618884473;keyid="test-key-rsa-pss";tag="header-example"`,
			"LjbtqUbfmvjj5C5kr1Ugj4PmLYvx9wVjZvD9GsTT4F7GrcQEdJzgI9qHxICagShLRiLMlAJjtq6N4CDfKtjvuJyE5qH7KT8UCMkSowOB4+ECxCmT8rtAmj/0PIXxi0A0nxKyB09RNrCQibbUjsLS/2YyFYXEu4TRJQzRw1rLEuEfY17SARYhpTlaqwZVtR8NV7+4UKkjqpcAoFqWFQh62s7Cl+H2fjBSpqfZUJcsIk4N6wiKYd4je2U/lankenQ99PZfB4jY3I5rSV2DSBVkSFsURIjYErOs0tFTQosMTAoxk//0RoKUqiYY8Bh0aaUEb0rQl3/XaVe4bXTugEjHSw=="},
		"B.2.4": {rfcKey(t, ECDSAP256SHA256, rfcP256Public), `"@status": 200
"content-type": application/json
"content-digest": sha-512=:mEWXIS7MaLRuGgxOBdODa3xqM1XdEvxoYhvlCFJ41QJgJc4GTsPp29l5oGX69wWdXymyU0rjJuahq4l5aGgfLQ==:
"content-length": 23
"@signature-params": ("@status" "content-type" "content-digest" "content-length");created=1618884473;keyid="test-key-ecc-p256"`,
			"wNmSUAhwb5LxtOtOpNa6W5xj067m5hFrj0XQ4fvpaCLx0NKocgPquLgyahnzDnDAUy5eCdlYUEkLIj+32oiasw=="},
	} {
		signature, err := base64.StdEncoding.DecodeString(x.signature)
		if err == nil {
			err = x.key.verify([]byte(x.base), signature)
		}
		if err != nil {
			t.Errorf("%s: %v", section, err)
		}
	}
	for _, input := range []string{`("@query-param";name="Pet");created=1`, `("@status");created=1`, `("date";sf);created=1`, `("Date");created=1`, `("host");created=1`, `("date" "date");created=1`, `(date);created=1`} {
		d, err := httpsfv.UnmarshalDictionary([]string{"sig1=" + input})
		if err != nil {
			t.Fatal(err)
		}
		member, _ := d.Get("sig1")
		if base, err := signatureBase(received(t, rfcRequest), member.(httpsfv.InnerList)); err == nil {
			t.Errorf("%s gives the base %q; want an error", input, base)
		}
	}
}

// TestRFC9421Transformed: of the changes in B.4, those of what is not covered, and of how a header is split into lines,
// leave the base as it is; those of what is covered change it.
func TestRFC9421Transformed(t *testing.T) {
	t.Parallel()
	base := func(wire string) string {
		d, err := httpsfv.UnmarshalDictionary([]string{`transform=("@method" "@path" "@authority" "accept");created=1618884473;keyid="test-key-ed25519"`})
		if err != nil {
			t.Fatal(err)
		}
		member, _ := d.Get("transform")
		text, err := signatureBase(received(t, wire), member.(httpsfv.InnerList))
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	for change, x := range map[string]struct {
		from, to string
		same     bool
	}{
		"a parameter and a header more":   {"Name2=value2 HTTP/1.1\r\n", "Name2=value2&param=added HTTP/1.1\r\nAccept-Language: en-US,en;q=0.5\r\n", true},
		"another order, one line, blanks": {"Accept: application/json\r\nAccept: */*\r\n", "Accept:  application/json, */* \r\n", true},
		"another authority":               {"Host: example.org", "Host: example.com", false},
		"another method":                  {"GET ", "POST ", false},
		"the values in another order":     {"Accept: application/json\r\nAccept: */*\r\n", "Accept: */*\r\nAccept: application/json\r\n", false},
	} {
		changed := strings.Replace(rfcTransformed, x.from, x.to, 1)
		if changed == rfcTransformed {
			t.Fatalf("%s changes nothing", change)
		}
		if same := base(changed) == base(rfcTransformed); same != x.same {
			t.Errorf("%s: the same base: %t, want %t", change, same, x.same)
		}
	}
}

// TestContentDigest holds the digest to the examples of RFC 9530 (https://www.rfc-editor.org/rfc/rfc9530.html,
// appendix B.1 and B.2) and RFC 9421, B.2.
func TestContentDigest(t *testing.T) {
	t.Parallel()
	const whole = "sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:" // of {"hello": "world"} and a line feed
	if got := contentDigest([]byte("{\"hello\": \"world\"}\n")); got != whole {
		t.Errorf("the digest is %s, want %s", got, whole)
	}
	body := []byte(`{"hello": "world"}`)
	for lines, good := range map[string]bool{
		rfcDigest: true,
		rfcDigest + "\nsha-256=:X48E9qOokqqrvdts8nOJRJN3OWDUoyWxBf7kbu9DBPE=:": true,
		rfcDigest + "\n" + whole:  false, // one is wrong
		whole:                     false,
		"md5=:AAAAAAAAAAAAAAA=:":  false, // nothing that counts
		"":                        false,
		"sha-256":                 false,
		"sha-256=(\"a\")":         false,
		"sha-256=\"not bytes\"":   false,
		"\x00":                    false,
		"sha-256=:AA==:":          false,
		"sha-256=::, sha-512=:A:": false,
	} {
		if err := checkDigest(strings.Split(lines, "\n"), body); (err == nil) != good {
			t.Errorf("%q: %v; want it good: %t", lines, err, good)
		}
	}
}

// TestDerivedComponents holds derived components to the rules of section 2.2: the authority in lower case and without
// the scheme's own port, an empty path as "/", an absent query as "?", and everything else as it is sent.
func TestDerivedComponents(t *testing.T) {
	t.Parallel()
	for url, want := range map[string][]string{ // @target-uri, @authority, @scheme, @request-target, @path, @query
		"https://www.example.com/path?param=value":       {"https://www.example.com/path?param=value", "www.example.com", "https", "/path?param=value", "/path", "?param=value"},
		"https://WWW.Example.COM:443":                    {"https://www.example.com/", "www.example.com", "https", "/", "/", "?"},
		"http://www.example.com:80/?":                    {"http://www.example.com/?", "www.example.com", "http", "/?", "/", "?"},
		"http://www.example.com:443/a%2Fb?baz=bat%2Dman": {"http://www.example.com:443/a%2Fb?baz=bat%2Dman", "www.example.com:443", "http", "/a%2Fb?baz=bat%2Dman", "/a%2Fb", "?baz=bat%2Dman"},
	} {
		req, err := http.NewRequest("POST", url, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, name := range []string{"@target-uri", "@authority", "@scheme", "@request-target", "@path", "@query"} {
			if got, err := component(req, name); err != nil || got != want[i] {
				t.Errorf("%s of %s is %q, %v; want %q", name, url, got, err, want[i])
			}
		}
	}
}
