package sqltest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority signs the certificates of a server and of its clients. One test uses it, by one goroutine at a time.
type Authority struct {
	t       testing.TB
	own     *tls.Certificate
	serial  int64
	revoked []x509.RevocationListEntry
}

// NewAuthority returns a certificate authority of a test's own. No other program trusts it.
func NewAuthority(t testing.TB) *Authority {
	a := &Authority{t: t}
	a.own = a.sign(&x509.Certificate{Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign})
	return a
}

// Client returns a new certificate of a client with this name.
func (a *Authority) Client(name string) *tls.Certificate {
	return a.sign(&x509.Certificate{Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
}

// Revoke enters a certificate in the list that WriteRevoked will write: a server that reads the list refuses the certificate.
func (a *Authority) Revoke(cert *tls.Certificate) {
	a.revoked = append(a.revoked, x509.RevocationListEntry{SerialNumber: cert.Leaf.SerialNumber, RevocationTime: time.Now().Add(-time.Minute)})
}

// Config returns the settings of a connection to 127.0.0.1 with a certificate of a client.
func (a *Authority) Config(cert *tls.Certificate) *tls.Config {
	roots := x509.NewCertPool()
	roots.AddCert(a.own.Leaf)
	return &tls.Config{Certificates: []tls.Certificate{*cert}, RootCAs: roots, ServerName: "127.0.0.1"}
}

// WriteServer writes ca.pem, and the server's certificate and key, server.pem and server.key, into a folder. The user of the folder owns them.
func (a *Authority) WriteServer(dir string) {
	a.t.Helper()
	server := a.sign(&x509.Certificate{Subject: pkix.Name{CommonName: "server"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	key, err := x509.MarshalPKCS8PrivateKey(server.PrivateKey)
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(dir, "ca.pem", "CERTIFICATE", a.own.Leaf.Raw)
	a.write(dir, "server.pem", "CERTIFICATE", server.Leaf.Raw)
	a.write(dir, "server.key", "PRIVATE KEY", key)
}

// WriteRevoked writes the list of the revoked certificates, revoked.pem, into a folder.
func (a *Authority) WriteRevoked(dir string) {
	a.t.Helper()
	list := &x509.RevocationList{Number: big.NewInt(int64(len(a.revoked) + 1)), ThisUpdate: time.Now().Add(-time.Hour), NextUpdate: time.Now().Add(time.Hour), RevokedCertificateEntries: a.revoked}
	raw, err := x509.CreateRevocationList(rand.Reader, list, a.own.Leaf, a.own.PrivateKey.(crypto.Signer))
	if err != nil {
		a.t.Fatal(err)
	}
	a.write(dir, "revoked.pem", "X509 CRL", raw)
}

// sign returns a certificate with its key, signed by the authority, or by itself while the authority has none: then it is the authority's.
func (a *Authority) sign(template *x509.Certificate) *tls.Certificate {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	a.serial++
	template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(a.serial), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := template, crypto.PrivateKey(key)
	if a.own != nil {
		parent, signer = a.own.Leaf, a.own.PrivateKey
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(raw)
	if err != nil {
		a.t.Fatal(err)
	}
	return &tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key, Leaf: leaf}
}

// write writes a PEM file with one block. It belongs to the owner of its folder, often the database server, and only that user can read it.
func (a *Authority) write(dir, name, kind string, raw []byte) {
	a.t.Helper()
	path := filepath.Join(dir, name)
	err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}), 0o600)
	if err == nil {
		err = giveLike(path, dir)
	}
	if err != nil {
		a.t.Fatal(err)
	}
}
