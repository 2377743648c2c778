package kmstest

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
)

// Server is a KMS.
type Server struct {
	*httptest.Server
	mu   sync.Mutex
	keys map[string]cipher.AEAD
	made []string // the plain values that it was given or gave out
}

// NewServer starts a KMS without keys.
func NewServer() *Server {
	s := &Server{keys: map[string]cipher.AEAD{}}
	s.Server = httptest.NewServer(s)
	return s
}

// PlainValues are all that it was given to seal or gave out opened, so that a
// test can say that there was none.
func (s *Server) PlainValues() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.made...)
}

// refusal is an error of KMS, by its type.
type refusal string

func (r refusal) Error() string { return string(r) }

const (
	notFound          refusal = "NotFoundException"
	invalidCiphertext refusal = "InvalidCiphertextException"
	incorrectKey      refusal = "IncorrectKeyException"
	validation        refusal = "ValidationException"
)

// request has the members of all operations.
type request struct {
	KeyId, SourceKeyId, DestinationKeyId                                     string //nolint:revive // KMS's names
	Plaintext, CiphertextBlob                                                []byte
	EncryptionContext, SourceEncryptionContext, DestinationEncryptionContext map[string]string
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var in request
	out, err := any(nil), json.NewDecoder(r.Body).Decode(&in)
	if err == nil {
		_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
		out, err = s.do(operation, in)
	}
	w.Header().Set("Content-Type", "application/x-amz-json-1.1")
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		out = map[string]string{"__type": err.Error(), "message": "refused"}
	}
	_ = json.NewEncoder(w).Encode(out)
}

func (s *Server) do(operation string, in request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch operation {
	case "CreateKey":
		id := rand.Text()
		secret := make([]byte, 32)
		_, _ = rand.Read(secret)
		block, err := aes.NewCipher(secret)
		if err != nil {
			return nil, err
		}
		if s.keys[id], err = cipher.NewGCMWithRandomNonce(block); err != nil {
			return nil, err
		}
		return map[string]any{"KeyMetadata": map[string]string{"KeyId": id, "Arn": arnPrefix + id}}, nil
	case "Encrypt":
		s.made = append(s.made, string(in.Plaintext))
		sealed, err := s.seal(in.KeyId, in.EncryptionContext, in.Plaintext)
		return map[string]any{"CiphertextBlob": sealed, "KeyId": arnPrefix + idOf(in.KeyId)}, err
	case "Decrypt":
		plain, err := s.open(in.KeyId, in.EncryptionContext, in.CiphertextBlob)
		if err == nil {
			s.made = append(s.made, string(plain))
		}
		return map[string]any{"Plaintext": plain, "KeyId": arnPrefix + idOf(in.KeyId)}, err
	case "ReEncrypt":
		plain, err := s.open(in.SourceKeyId, in.SourceEncryptionContext, in.CiphertextBlob)
		if err != nil {
			return nil, err
		}
		sealed, err := s.seal(in.DestinationKeyId, in.DestinationEncryptionContext, plain)
		return map[string]any{"CiphertextBlob": sealed, "KeyId": arnPrefix + idOf(in.DestinationKeyId)}, err
	}
	return nil, validation
}

const arnPrefix = "arn:aws:kms:eu-west-1:000000000000:key/"

func idOf(key string) string { return strings.TrimPrefix(key, arnPrefix) }

// seal puts the key's id before what is sealed, as KMS does in its own way.
func (s *Server) seal(key string, bound map[string]string, plain []byte) ([]byte, error) {
	aead, ok := s.keys[idOf(key)]
	switch {
	case !ok:
		return nil, notFound
	case len(plain) == 0 || len(plain) > 4096:
		return nil, validation
	}
	return append([]byte(idOf(key)+"|"), aead.Seal(nil, nil, plain, data(bound))...), nil
}

func (s *Server) open(key string, bound map[string]string, sealed []byte) ([]byte, error) {
	aead, ok := s.keys[idOf(key)]
	if !ok {
		return nil, notFound
	}
	under, rest, ok := bytes.Cut(sealed, []byte("|"))
	switch {
	case !ok || s.keys[string(under)] == nil:
		return nil, invalidCiphertext
	case string(under) != idOf(key):
		return nil, incorrectKey
	}
	plain, err := aead.Open(nil, nil, rest, data(bound))
	if err != nil {
		return nil, invalidCiphertext
	}
	return plain, nil
}

// data is the context as additional authenticated data: members in order, so
// that only what it says counts.
func data(bound map[string]string) []byte {
	text, _ := json.Marshal(bound) // of texts alone: it sorts them and cannot fail
	if len(bound) == 0 {
		return nil
	}
	return text
}
