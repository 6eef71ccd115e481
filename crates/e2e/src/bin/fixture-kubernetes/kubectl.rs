//! The part of `kubectl` that the steps of the examples use. It never waits, because the cluster
//! file does not change by itself.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::path;

/// A parsed command line.
struct Line<'a> {
    words: Vec<&'a str>,
    flags: BTreeMap<&'a str, &'a str>,
    /// The arguments after `--`.
    command: Vec<&'a str>,
}

/// Runs a command, and returns its output.
pub(crate) fn run(path: &Path, arguments: &[&str]) -> Result<String, String> {
    let line = Line::parse(arguments)?;
    let mut cluster = Cluster::open(path).map_err(|error| error.to_string())?;
    let text = line.run(&mut cluster)?;
    cluster.save().map_err(|error| error.to_string())?;
    Ok(text)
}

impl<'a> Line<'a> {
    fn parse(arguments: &[&'a str]) -> Result<Self, String> {
        let mut line = Self {
            words: Vec::new(),
            flags: BTreeMap::new(),
            command: Vec::new(),
        };
        let mut rest = arguments.iter().copied();
        while let Some(word) = rest.next() {
            match word {
                "--" => line.command.extend(rest.by_ref()),
                "--ignore-not-found" => drop(line.flags.insert(word, "true")),
                "-o" | "--namespace" | "--selector" => {
                    let value = rest.next().ok_or_else(|| format!("{word} needs a value"))?;
                    line.flags.insert(word, value);
                }
                _ if word.starts_with("--") => {
                    let pair = word.split_once('=');
                    let (flag, value) = pair.ok_or_else(|| format!("unknown flag: {word}"))?;
                    line.flags.insert(flag, value);
                }
                _ => line.words.push(word),
            }
        }
        Ok(line)
    }

    fn namespace(&self) -> &'a str {
        self.flags.get("--namespace").copied().unwrap_or("default")
    }

    fn run(&self, cluster: &mut Cluster) -> Result<String, String> {
        let space = self.namespace();
        match self.words.as_slice() {
            ["create", "namespace", name] => {
                cluster.create_namespace(name)?;
                Ok(format!("namespace/{name} created\n"))
            }
            ["delete", "namespace", name] => match cluster.delete_namespace(name) {
                Err(_) if self.flags.contains_key("--ignore-not-found") => Ok(String::new()),
                deleted => deleted.map(|()| format!("namespace \"{name}\" deleted\n")),
            },
            ["create", "configmap", name] => {
                let literal = self.flags.get("--from-literal");
                let data = literal.and_then(|pair| pair.split_once('='));
                cluster.create_config_map(space, name, &data.into_iter().collect())?;
                Ok(format!("configmap/{name} created\n"))
            }
            ["run", name] => {
                let image = self.flags.get("--image");
                let spec = json!({"containers": [{"name": name, "image": image}]});
                cluster.create_pod(space, json!({"metadata": {"name": name}, "spec": spec}))?;
                Ok(format!("pod/{name} created\n"))
            }
            ["wait", which] => {
                let name = which.strip_prefix("pod/");
                let pods = self.selected(cluster, name)?;
                let held: Result<Vec<String>, String> =
                    pods.into_iter().map(|pod| self.wait(pod)).collect();
                held.map(|lines| lines.concat())
            }
            ["get", "pods"] => self.get(&self.selected(cluster, None)?),
            ["get", "pod", name] => self.get(&self.selected(cluster, Some(name))?),
            ["logs", name] => Ok(logs(cluster.pod(space, name)?)),
            ["exec", name] => self.exec(cluster, name),
            other => Err(format!("unknown command {other:?}")),
        }
    }

    fn selected<'c>(
        &self,
        cluster: &'c Cluster,
        name: Option<&str>,
    ) -> Result<Vec<&'c Value>, String> {
        match name {
            Some(name) => Ok(vec![cluster.pod(self.namespace(), name)?]),
            None => cluster.pods(
                Some(self.namespace()),
                self.flags.get("--selector").copied(),
            ),
        }
    }

    fn wait(&self, pod: &Value) -> Result<String, String> {
        let name = text(&pod["metadata"]["name"]);
        let wanted = self.flags.get("--for").copied().unwrap_or_default();
        let holds = if let Some(rest) = wanted.strip_prefix("jsonpath=") {
            let pair = rest.split_once('=');
            let (at, value) = pair.ok_or_else(|| format!("{rest} has no value"))?;
            path::find(pod, at)? == value
        } else if wanted == "condition=Ready" {
            pod["status"]["conditions"][0]["status"] == "True"
        } else {
            return Err(format!("unknown condition `{wanted}`"));
        };
        if holds {
            Ok(format!("pod/{name} condition met\n"))
        } else {
            Err(format!(
                "timed out waiting for the condition on pods/{name}"
            ))
        }
    }

    fn get(&self, pods: &[&Value]) -> Result<String, String> {
        let shown = self.flags.get("-o").copied().unwrap_or("name");
        let each = |pod: &&Value| match shown.strip_prefix("jsonpath=") {
            Some(at) => path::find(pod, at),
            None if shown == "name" => Ok(format!("pod/{}\n", text(&pod["metadata"]["name"]))),
            None => Err(format!("unknown output `{shown}`")),
        };
        let lines: Result<Vec<String>, String> = pods.iter().map(each).collect();
        lines.map(|lines| lines.concat())
    }

    fn exec(&self, cluster: &Cluster, pod: &str) -> Result<String, String> {
        let ["printenv", name] = self.command.as_slice() else {
            return Err(format!("unknown program {:?}", self.command));
        };
        let value = cluster.variable(self.namespace(), pod, name);
        let value = value.ok_or("command terminated with exit code 1")?;
        Ok(format!("{value}\n"))
    }
}

/// Returns the log of a pod; only `echo` is supported.
fn logs(pod: &Value) -> String {
    let command = pod["spec"]["containers"][0]["command"].as_array();
    let words: Vec<&str> = command.into_iter().flatten().map(text).collect();
    match words.as_slice() {
        ["echo", rest @ ..] => format!("{}\n", rest.join(" ")),
        _ => String::new(),
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
