package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-faster/yaml"
)

const (
	stream = "arn:aws:dynamodb:eu-west-1:111122223333:table/restored-delivery/stream/2026-01-01T00:00:00.000"
	key    = "arn:aws:kms:eu-west-1:111122223333:key/0123"
)

var restored = map[string]string{
	"Environment": "staging", "ContentTableName": "restored-content", "DeliveryTableName": "restored-delivery",
	"DeliveryStreamArn": stream, "SealingKeyArn": key,
}

var named = map[string]string{"Environment": "production", "ContentTableName": "colophon-content", "DeliveryTableName": "colophon-delivery"}

func TestWhatADeploymentIsHeldTo(t *testing.T) {
	t.Parallel()
	namedInStaging := map[string]string{"Environment": "staging", "ContentTableName": "colophon-content", "DeliveryTableName": "colophon-delivery"}
	for name, test := range map[string]struct {
		found map[string]string
		move  bool
		held  []string
		says  []string
		err   string
	}{
		"no such stack":            {found: nil, says: []string{"Stack colophon in eu-west-1 is not there yet", "STACK_NAME"}},
		"tables of its own":        {found: map[string]string{"Environment": "production", "ContentTableName": "", "DeliveryTableName": "", "DeliveryStreamArn": "", "SealingKeyArn": ""}, says: []string{"of its own", "STACK_NAME"}},
		"tables that it was given": {found: restored, held: given, says: []string{"takes no others", "ContentTableName=restored-content", "SealingKeyArn=" + key, "MOVE_TABLES=yes"}},
		"a second restore":         {found: restored, move: true, held: given, says: []string{"may move", "none of these may be empty"}},
		"tables with names": {found: named, held: given[:2], says: []string{
			"ContentTableName=colophon-content", "Give DeliveryStreamArn and SealingKeyArn too",
			"aws dynamodb describe-table --region eu-west-1 --table-name colophon-delivery --query Table.LatestStreamArn",
			"aws cloudformation describe-stacks --region eu-west-1 --stack-name colophon",
		}},
		"tables with names that would be deleted":                     {found: namedInStaging, err: "From a stack whose tables have names"},
		"tables with names that would be deleted, moved all the same": {found: namedInStaging, move: true, err: "From a stack whose tables have names"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := decide(target{Stack: "colophon", Region: "eu-west-1"}, test.found, test.move)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Fatalf("got %v", err)
				}
				return
			}
			must(t, err)
			if len(got.hold) != len(test.held) {
				t.Errorf("held are %v", got.hold)
			}
			for _, name := range test.held {
				if got.hold[name] != test.found[name] {
					t.Errorf("%s is held to %q", name, got.hold[name])
				}
			}
			for _, text := range test.says {
				if !strings.Contains(got.says, text) {
					t.Errorf("%q is not in\n%s", text, got.says)
				}
			}
		})
	}
}

// asSamWrites is a part of a template that sam built.
const asSamWrites = `Parameters:
  ContentTableName:
    Type: String
    Default: ''
    AllowedPattern: ([a-zA-Z0-9_.-]{3,255})?
    Description: The table of projects, documents and releases, where it is there
      already (restored, or kept from another stack), by default a new one.
  DeliveryTableName:
    Type: String
    Default: ''
    Description: The table of destinations and deliveries.
  DeliveryStreamArn:
    Type: String
    Default: ''
  SealingKeyArn:
    Type: String
    Default: ''
    Description: The key.
  PublicAddress:
    Type: String
    Default: ''
Resources: {}
`

type parameter struct {
	Default       string   `yaml:"Default"`
	AllowedValues []string `yaml:"AllowedValues"`
	MinLength     int      `yaml:"MinLength"`
	Description   string   `yaml:"Description"`
}

func parametersOf(t *testing.T, template []byte) map[string]parameter {
	t.Helper()
	var read struct {
		Parameters map[string]parameter `yaml:"Parameters"`
	}
	must(t, yaml.Unmarshal(template, &read))
	return read.Parameters
}

func TestTheBuiltTemplateTakesTheTablesOfTheStackAlone(t *testing.T) {
	t.Parallel()
	ours, err := os.ReadFile(filepath.Join("..", "..", "template.yaml"))
	must(t, err)
	for name, text := range map[string][]byte{"as sam writes it": []byte(asSamWrites), "the template itself": yamlWithoutTags(ours)} {
		held := map[string]string{}
		for _, one := range given {
			held[one] = restored[one]
		}
		before := parametersOf(t, text)
		narrowed, err := narrow(text, held, false)
		must(t, err)
		for one, p := range parametersOf(t, narrowed) {
			value, isHeld := held[one]
			switch {
			case isHeld && (p.Default != value || len(p.AllowedValues) != 1 || p.AllowedValues[0] != value || p.Description != before[one].Description):
				t.Errorf("%s: %s is %+v", name, one, p)
			case !isHeld && p.Default != before[one].Default:
				t.Errorf("%s: %s has changed: %+v", name, one, p)
			}
		}
		again, err := narrow(narrowed, held, false)
		must(t, err)
		if string(again) != string(narrowed) {
			t.Errorf("%s: held again it is\n%s", name, again)
		}
		movable, err := narrow(narrowed, held, true)
		must(t, err)
		for one, p := range parametersOf(t, movable) {
			if value, isHeld := held[one]; isHeld && (p.Default != value || p.AllowedValues != nil || p.MinLength != 1) {
				t.Errorf("%s: %s, which may move, is %+v", name, one, p)
			}
		}
		untouched, err := narrow(text, nil, false)
		must(t, err)
		if string(untouched) != string(text) {
			t.Errorf("%s: nothing is held, and it has changed", name)
		}
	}
	if _, err := narrow([]byte("Parameters: {}\n"), restored, false); err == nil {
		t.Error("a template without the parameters was taken")
	}
}

// yamlWithoutTags is the template up to where it has CloudFormation's tags.
func yamlWithoutTags(template []byte) []byte {
	text, _, _ := strings.Cut(string(template), "\nRules:\n")
	return []byte(text + "\n")
}

func TestTheStackIsTheOneThatSamDeploys(t *testing.T) {
	t.Parallel()
	const file = "version = 0.1\n[default.global.parameters]\nstack_name = \"colophon\"\n"
	const saved = file + "[default.deploy.parameters]\nstack_name = 'mine'\nregion = \"us-west-2\"\nprofile = \"team\"\nresolve_s3 = true\n"
	for name, test := range map[string]struct {
		settings string
		given    target
		want     target
		err      string
	}{
		"the file's":        {file, target{Region: "eu-west-1"}, target{Stack: "colophon", Region: "eu-west-1"}, ""},
		"what guided saved": {saved, target{Region: "eu-west-1"}, target{Stack: "mine", Region: "us-west-2", Profile: "team"}, ""},
		"make's":            {saved, target{Stack: "other", Region: "eu-west-1"}, target{Stack: "other", Region: "us-west-2", Profile: "team"}, ""},
		"none":              {"", target{Region: "eu-west-1"}, target{}, "STACK_NAME"},
		"no name":           {file, target{Stack: "a b", Region: "eu-west-1"}, target{}, "STACK_NAME"},
		"no region":         {file, target{}, target{}, "AWS_REGION"},
		"no TOML":           {"[", target{}, target{}, "TOML"},
	} {
		got, err := choose(test.settings, test.given)
		if got != test.want || (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
			t.Errorf("%s: got %+v, %v", name, got, err)
		}
	}
	if got := strings.Join(target{Stack: "mine", Region: "us-west-2"}.arguments(), " "); got != "--stack-name mine --region us-west-2" {
		t.Errorf("sam is given %s", got)
	}
}

// Not parallel: the AWS settings are the process's.
func TestAStackThatCannotBeReadIsNotDeployed(t *testing.T) {
	var status int
	var code, message string
	aws := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/xml")
		w.WriteHeader(status)
		w.Write([]byte("<ErrorResponse><Error><Type>Sender</Type><Code>" + code + "</Code><Message>" + message + "</Message></Error></ErrorResponse>"))
	}))
	defer aws.Close()
	for name, value := range map[string]string{
		"AWS_ENDPOINT_URL": aws.URL, "AWS_CONFIG_FILE": "/nowhere", "AWS_SHARED_CREDENTIALS_FILE": "/nowhere", "AWS_PROFILE": "",
		"AWS_EC2_METADATA_DISABLED": "true", "AWS_SESSION_TOKEN": "", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b",
	} {
		t.Setenv(name, value)
	}
	folder := t.TempDir()
	path := filepath.Join(folder, "template.yaml")
	must(t, os.WriteFile(path, []byte(asSamWrites), 0o600))
	attempt := func() error {
		return run(t.Context(), folder, "/nowhere", target{Stack: "colophon", Region: "eu-west-1"}, false)
	}
	status, code, message = http.StatusBadRequest, "ValidationError", "Stack with id colophon does not exist"
	must(t, attempt())
	for _, test := range []struct{ code, message, says string }{
		{"AccessDenied", "no", "AccessDenied"},
		{"ExpiredToken", "no", "ExpiredToken"},
		{"ValidationError", "another", "ValidationError"},
	} {
		status, code, message = http.StatusForbidden, test.code, test.message
		if err := attempt(); err == nil || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), "nothing is deployed") {
			t.Errorf("%s: got %v", test.code, err)
		}
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	if err := attempt(); err == nil || !strings.Contains(err.Error(), "credentials") {
		t.Errorf("without credentials: %v", err)
	}
	left, err := os.ReadFile(path)
	must(t, err)
	if string(left) != asSamWrites {
		t.Error("the template has changed")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
