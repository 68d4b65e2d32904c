//! Containers, clusters, clouds, infrastructure as code, package registries.

use super::call::{Call, Danger, UNKNOWN, danger};
use super::wrapper::behind_options;

pub(super) fn judge(call: &Call<'_>) -> Option<Danger> {
    if call.is_harmless_mode() || call.any(&["--dryrun", "--check", "-h", "help"]) && call.name != "docker" {
        return None;
    }
    let words: Vec<&str> = call.operands().filter(|word| !word.is_empty()).collect();
    let found = match call.name {
        "docker" | "podman" | "nerdctl" | "docker-compose" | "podman-compose" => container(call, &words),
        "kubectl" | "oc" | "k" => cluster(call, &words),
        "helm" | "helm3" | "helmfile" => {
            matches_any(&words, &["uninstall", "delete", "del", "un", "destroy", "rollback"])
        }
        "terraform" | "tofu" | "terragrunt" | "tf" => terraform(call, &words),
        "aws" | "awslocal" => aws(call, &words),
        "gcloud" | "az" | "oci" | "ibmcloud" | "aliyun" | "doctl" | "linode-cli" | "hcloud" | "vultr-cli"
        | "scw" | "exo" | "openstack" | "eksctl" | "kops" | "civo" | "tccli" => any_verb(&words, VERBS),
        "gsutil" => matches_any(&words, &["rm", "rb"]).also(|| words.contains(&"rsync") && call.short("d")),
        "bq" => matches_any(&words, &["rm"]),
        "s3cmd" | "mc" | "s5cmd" | "b2" | "azcopy" => {
            any_verb(&words, &["del", "rb", "rm", "delete", "remove", "expire", "delete-bucket"])
                .also(|| words.contains(&"sync") && call.options().any(|arg| arg.starts_with("--delete")))
        }
        "pulumi" | "cdk" | "cdktf" | "sls" | "serverless" | "sam" | "copilot" | "amplify" | "sst"
        | "vagrant" | "packer" | "chalice" | "zappa" | "up" | "eb" => {
            any_verb(&words, &["destroy", "remove", "delete", "undeploy", "terminate"])
                .filter(|_| call.name != "vagrant" || !words.contains(&"plugin"))
        }
        "minikube" | "kind" | "k3d" | "multipass" | "lxc" | "incus" | "virsh" | "nova" | "vboxmanage"
        | "VBoxManage" | "limactl" | "colima" | "prlctl" | "qm" | "pct" | "xl" => any_verb(
            &words,
            &[
                "delete",
                "destroy",
                "undefine",
                "unregistervm",
                "purge",
                "snapshot-delete",
                "vol-delete",
                "pool-delete",
            ],
        ),
        "nomad" => matches_any(&words, &["stop", "purge"]),
        "consul" | "vault" | "etcdctl" | "zkCli.sh" | "bao" => {
            any_verb(&words, &["delete", "destroy", "del", "disable", "revoke", "seal", "deleteall"])
        }
        "argocd" | "flux" | "istioctl" | "linkerd" | "velero" | "rancher" | "cilium" | "knative" | "kn"
        | "crossplane" => any_verb(&words, &["delete", "uninstall", "purge"]),
        "heroku" | "fly" | "flyctl" | "vercel" | "netlify" | "wrangler" | "firebase" | "railway"
        | "render" | "supabase" | "planetscale" | "pscale" | "neonctl" | "turso" | "cf" | "dokku"
        | "surge" | "now" | "gatsby" => paas(&words),
        "npm" | "yarn" | "pnpm" | "cargo" | "gem" | "twine" | "dart" | "nuget" | "dotnet" => {
            matches_any(&words, &["unpublish", "yank"])
                .also(|| call.name == "gem" && words.first() == Some(&"uninstall") && call.short("a"))
                .also(|| call.name == "dotnet" && words.first() == Some(&"ef") && words.contains(&"drop"))
        }
        "kafka-topics" | "kafka-topics.sh" | "kafka-delete-records" => {
            Some(call.exact("--delete") || call.name.contains("delete"))
        }
        "rabbitmqctl" | "rabbitmqadmin" => any_verb(
            &words,
            &[
                "reset",
                "force_reset",
                "delete",
                "delete_queue",
                "purge_queue",
                "delete_vhost",
                "delete_user",
                "purge",
            ],
        ),
        "ansible" => Some(call.args.iter().any(|arg| arg.contains("state=absent") || arg.contains("reboot"))),
        "ctr" | "crictl" | "buildah" | "skopeo" => {
            any_verb(&words, &["rm", "rmi", "rmp", "delete", "remove"])
        }
        "kubeadm" => matches_any(&words, &["reset"]),
        "etcdutl" => matches_any(&words, &["restore"]),
        "proxmox-backup-client" => any_verb(&words, &["forget", "prune"]),
        _ => None,
    };
    let shown: Vec<String> = words
        .iter()
        .take(3)
        .map(|word| word.chars().filter(|c| !c.is_control()).take(30).collect())
        .collect();
    found.filter(|found| *found).and_then(|_| {
        danger("cloud", format!("`{} {}` deletes or stops what others use", call.name, shown.join(" ")))
    })
}

const VERBS: &[&str] = &[
    "delete",
    "destroy",
    "terminate",
    "purge",
    "remove",
    "rm",
    "delete-batch",
    "reset",
    "deallocate",
    "drop",
    "wipe",
    "detach",
    "deprovision",
    "bulk-delete",
    "batch-delete",
    "unset",
    "stop",
    "undelete-disabled",
    "rebuild",
    "disable",
];

fn matches_any(words: &[&str], verbs: &[&str]) -> Option<bool> {
    Some(words.iter().take(3).any(|word| verbs.contains(word)))
}

/// A word that is one of these verbs, or begins with one and a dash.
fn any_verb(words: &[&str], verbs: &[&str]) -> Option<bool> {
    let is_verb = |word: &str| {
        verbs.contains(&word)
            || word.split_once(['-', ':']).is_some_and(|(head, _)| {
                verbs.contains(&head) && word.len() < 40 && !word.contains('.') && !word.contains('/')
            })
    };
    let config = words.first() == Some(&"config");
    // behind a reading verb stand names
    let reads = |word: &&&str| {
        matches!(
            **word,
            "list"
                | "describe"
                | "show"
                | "get"
                | "read"
                | "view"
                | "logs"
                | "status"
                | "ssh"
                | "create"
                | "info"
                | "search"
                | "invoke"
                | "call"
                | "start"
                | "ls"
                | "help"
                | "explain"
        )
    };
    Some(!config && words.iter().take(6).take_while(|word| !reads(word)).any(|word| is_verb(word)))
}

trait Also {
    fn also(self, other: impl FnOnce() -> bool) -> Option<bool>;
}

impl Also for Option<bool> {
    fn also(self, other: impl FnOnce() -> bool) -> Option<bool> {
        Some(self.unwrap_or(false) || other())
    }
}

fn paas(words: &[&str]) -> Option<bool> {
    let verb =
        |word: &str| matches!(word, "destroy" | "delete" | "remove" | "rm" | "reset" | "down" | "teardown");
    Some(words.iter().take(4).any(|word| {
        let tail = word.rsplit(':').next().unwrap_or(word);
        verb(word)
            || (word.contains(':') && (verb(tail) || tail.starts_with("delete") || tail == "disable"))
            || word.starts_with("delete-")
            || (*word == "drop")
    }))
}

fn container(call: &Call<'_>, words: &[&str]) -> Option<bool> {
    let words: Vec<&str> =
        words.iter().copied().skip_while(|word| matches!(*word, "container" | "compose" | "-f")).collect();
    let (first, second) =
        (words.first().copied().unwrap_or_default(), words.get(1).copied().unwrap_or_default());
    let unknown = words.iter().any(|word| word.contains(UNKNOWN) || *word == "*");
    let compose = call.name.contains("compose") || call.args.iter().any(|arg| arg == "compose");
    if compose && call.args.iter().any(|arg| arg == "down") {
        return Some(call.any(&["-v", "--volumes", "--rmi"]));
    }
    Some(match first {
        "system" | "volume" | "network" | "image" | "secret" | "config" | "stack" | "service" | "node"
        | "pod" | "machine" | "swarm" | "context" | "plugin" => match second {
            "prune" => first != "image" || call.short("a") || call.exact("--all"),
            "rm" | "remove" => !matches!(first, "image" | "context") || unknown,
            "leave" | "reset" | "down" => true,
            _ => false,
        },
        "prune" => true,
        "rm" => call.short("fv") || call.exact("--force") || call.exact("--volumes") || unknown,
        "rmi" => unknown || call.short("f"),
        "kill" | "stop" => unknown,
        _ => false,
    })
}

fn cluster(call: &Call<'_>, words: &[&str]) -> Option<bool> {
    let verb = words.iter().copied().find(|word| CLUSTER_VERBS.contains(word)).unwrap_or_default();
    if call.args.iter().any(|arg| arg.starts_with("--dry-run=client") || arg.starts_with("--dry-run=server"))
    {
        return Some(false);
    }
    Some(match verb {
        "delete" | "drain" => true,
        "replace" => call.exact("--force"),
        "scale" => {
            call.args.iter().any(|arg| arg == "--replicas=0") || call.value(&["--replicas"]) == Some("0")
        }
        "apply" => call.exact("--prune"),
        "patch" => call.args.iter().any(|arg| arg.contains("finalizers")),
        _ => false,
    })
}

const CLUSTER_VERBS: &[&str] = &[
    "get",
    "describe",
    "logs",
    "delete",
    "drain",
    "replace",
    "scale",
    "apply",
    "patch",
    "diff",
    "explain",
    "create",
    "exec",
    "cp",
    "port-forward",
    "auth",
    "top",
    "rollout",
    "annotate",
    "label",
    "config",
    "events",
    "edit",
    "wait",
];

fn terraform(call: &Call<'_>, words: &[&str]) -> Option<bool> {
    let has = |word: &str| words.contains(&word);
    let destroy_flag = call.args.iter().any(|arg| matches!(arg.as_str(), "-destroy" | "--destroy"));
    Some(
        (has("destroy") && !has("plan"))
            || (has("apply") && destroy_flag)
            || (has("state") && (has("rm") || has("push")))
            || (has("workspace") && has("delete"))
            || has("taint")
            || has("force-unlock"),
    )
}

fn aws(call: &Call<'_>, words: &[&str]) -> Option<bool> {
    // only the second word is an operation; names follow
    let service = behind_options(call.args, "", 0);
    let operation = behind_options(service.get(1..).unwrap_or_default(), "", 0);
    let second = operation.first().map_or("", String::as_str);
    if service.first().is_some_and(|service| service == "s3") {
        let removes = words.iter().any(|word| matches!(*word, "rb" | "rm"))
            || (words.iter().any(|word| matches!(*word, "sync" | "mv")) && call.exact("--delete"));
        return Some(removes);
    }
    let verb = |word: &str| {
        let head = word.split('-').next().unwrap_or(word);
        matches!(
            head,
            "delete"
                | "terminate"
                | "remove"
                | "purge"
                | "deregister"
                | "destroy"
                | "deprovision"
                | "revoke"
                | "batch-delete"
        ) || word.starts_with("batch-delete")
            || matches!(
                word,
                "schedule-key-deletion"
                    | "stop-instances"
                    | "reboot-instances"
                    | "disable-key"
                    | "stop-db-instance"
                    | "reset-db-parameter-group"
                    | "detach-volume"
                    | "stop-logging"
                    | "disable-rule"
                    | "disassociate-address"
                    | "release-address"
                    | "release-hosts"
                    | "admin-delete-user"
                    | "cancel-key-rotation"
                    | "restore-object-delete"
            )
    };
    Some(verb(second) || (call.exact("--desired-count") && call.value(&["--desired-count"]) == Some("0")))
}
