package kmstest_test

import (
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"

	"colophon/internal/kmstest"
)

func TestAValueOpensUnderItsKeyAndItsContextOnly(t *testing.T) {
	t.Parallel()
	server := kmstest.NewServer()
	t.Cleanup(server.Close)
	client := kms.New(kms.Options{
		Region: "eu-west-1", BaseEndpoint: aws.String(server.URL), Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
	})
	key := func() *string {
		made, err := client.CreateKey(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		return made.KeyMetadata.KeyId
	}
	one, other := key(), key()
	bound := map[string]string{"project": "p", "destination": "d"}
	sealed, err := client.Encrypt(t.Context(), &kms.EncryptInput{KeyId: one, Plaintext: []byte("plain"), EncryptionContext: bound})
	if err != nil {
		t.Fatal(err)
	}
	var wrongContext *types.InvalidCiphertextException
	var wrongKey *types.IncorrectKeyException
	for _, row := range []struct {
		key   *string
		bound map[string]string
		want  any
	}{
		{one, bound, nil},
		{one, map[string]string{"destination": "d", "project": "p"}, nil},
		{one, map[string]string{"project": "p"}, &wrongContext},
		{one, map[string]string{"project": "p", "destination": "d", "purpose": "secret"}, &wrongContext},
		{one, map[string]string{"project": "d", "destination": "p"}, &wrongContext},
		{one, nil, &wrongContext},
		{other, bound, &wrongKey},
	} {
		out, err := client.Decrypt(t.Context(), &kms.DecryptInput{KeyId: row.key, CiphertextBlob: sealed.CiphertextBlob, EncryptionContext: row.bound})
		if row.want == nil {
			if err != nil || string(out.Plaintext) != "plain" {
				t.Errorf("%v: %v", row.bound, err)
			}
		} else if !errors.As(err, row.want) {
			t.Errorf("%v: %v", row.bound, err)
		}
	}
	moved, err := client.ReEncrypt(t.Context(), &kms.ReEncryptInput{
		CiphertextBlob: sealed.CiphertextBlob, SourceKeyId: one, SourceEncryptionContext: bound,
		DestinationKeyId: one, DestinationEncryptionContext: map[string]string{"project": "p"},
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := client.Decrypt(t.Context(), &kms.DecryptInput{KeyId: one, CiphertextBlob: moved.CiphertextBlob, EncryptionContext: map[string]string{"project": "p"}})
	if err != nil || string(out.Plaintext) != "plain" {
		t.Errorf("moved to another context: %v", err)
	}
}
