package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"syscall"
	"time"
)

// handshake returns the encrypted connection and the last instant of the certificate that counts: the leaf's or, if one
// has expired, that one's.
func (c *Client) handshake(ctx context.Context, conn net.Conn, host string) (net.Conn, time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, c.handshakeTime)
	defer cancel()
	secured := tls.Client(conn, &tls.Config{
		ServerName: host,
		MinVersion: tls.VersionTLS12,
		NextProtos: []string{"http/1.1"},
		RootCAs:    c.roots,
		Time:       c.clock,
	})
	if err := secured.HandshakeContext(ctx); err != nil {
		detail, notAfter := c.tlsDetail(ctx, err)
		failure := FailureTLS
		if errors.As(err, new(x509.SystemRootsError)) {
			failure = FailureOurs
		}
		return nil, notAfter, fault{failure, detail}
	}
	return secured, secured.ConnectionState().PeerCertificates[0].NotAfter, nil
}

func (c *Client) tlsDetail(ctx context.Context, err error) (Detail, time.Time) {
	var unverified *tls.CertificateVerificationError
	var network net.Error
	switch {
	case errors.As(err, &unverified) && len(unverified.UnverifiedCertificates) > 0:
		return c.certificateDetail(unverified)
	case ctx.Err() != nil, errors.As(err, &network) && network.Timeout():
		return DetailTimeout, time.Time{}
	case errors.As(err, new(tls.RecordHeaderError)):
		return DetailNotTLS, time.Time{}
	case tlsAlert(err):
		return DetailAlert, time.Time{}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return DetailClosed, time.Time{}
	}
	return DetailProtocol, time.Time{}
}

func (c *Client) certificateDetail(err *tls.CertificateVerificationError) (Detail, time.Time) {
	chain := err.UnverifiedCertificates
	var invalid x509.CertificateInvalidError
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && c.clock().Before(invalid.Cert.NotBefore):
		return DetailNotYetValid, invalid.Cert.NotAfter
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return DetailExpired, invalid.Cert.NotAfter
	case errors.As(err, new(x509.HostnameError)):
		return DetailName, chain[0].NotAfter
	case errors.As(err, new(x509.UnknownAuthorityError)) && issuerMissing(chain):
		return DetailIncompleteChain, chain[0].NotAfter
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return DetailUnknownIssuer, chain[0].NotAfter
	}
	return DetailCertificate, chain[0].NotAfter
}

// issuerMissing tells whether the leaf was signed by a certificate that was not sent. Public authorities sign leaves by
// intermediates only, so this is how a chain that lacks one looks.
func issuerMissing(chain []*x509.Certificate) bool {
	leaf := chain[0]
	for _, issuer := range chain {
		if leaf.CheckSignatureFrom(issuer) == nil || issuer == leaf && selfSigned(leaf) {
			return false
		}
	}
	return true
}

// selfSigned is asked apart from CheckSignatureFrom, which refuses an issuer that is no authority.
func selfSigned(c *x509.Certificate) bool {
	return c.CheckSignature(c.SignatureAlgorithm, c.RawTBSCertificate, c.Signature) == nil
}

// tlsAlert tells whether err is an alert that the other side sent. crypto/tls marks those by the operation's name.
func tlsAlert(err error) bool {
	var operation *net.OpError
	return errors.As(err, &operation) && operation.Op == "remote error"
}
