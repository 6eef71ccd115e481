//! The written form of an agent file (`kind: Agent`).
//!
//! Its main type is [`AgentFile`].

use serde_json::{Value, json};

use super::eval_file::ApiVersion;
use crate::builtin_agent::BuiltinAgent;
use crate::decode::{
    Context, Decode, Definitions, LooseText, RequiredKey, Table, decode_word, record, words,
};
use crate::document::Node;
use crate::problem::WithSpan;

words! {
    /// `kind` of an agent file.
    pub enum AgentKindWord {
        "Agent" => Agent,
    }
}

record! {
    /// An agent: a built-in one, one that speaks ACP, or any command.
    pub struct AgentFile any_of ["builtin", "acp", "commands"] {
        /// The schema that an editor checks this file against.
        "$schema" => schema: Option<LooseText>,
        /// Must be `Agent`.
        "kind" => kind: RequiredKey<AgentKindWord>,
        /// The version of the format; it changes nothing here.
        "apiVersion" => api_version: Option<ApiVersion>,
        /// Who the agent is.
        "metadata" => metadata: RequiredKey<AgentMetadata>,
        /// One of the agents that Proctor knows.
        "builtin" => builtin: Option<WithSpan<BuiltinFile>>,
        /// Any program that speaks the Agent Client Protocol. Wins over `builtin`.
        "acp" => acp: Option<AcpFile>,
        /// Any program, by templates of its command line.
        "commands" => commands: Option<WithSpan<CommandsFile>>,
        /// Where the agent looks for skills.
        "skills" => skills: Option<SkillMountFile>,
        /// Whether the agent reaches its model through Proctor. Proctor's own.
        "modelTap" => model_tap: Option<bool>,
        /// Environment variables that an `acp` or `commands` agent gets besides the usual ones; `{env.NAME}` is
        /// expanded. Proctor's own.
        "env" => env: Table<WithSpan<LooseText>>,
        /// When an `acp` or `commands` agent connects to its servers. Proctor's own.
        "connects" => connects: Option<WithSpan<ConnectsWord>>,
    }
}

words! {
    /// When an agent connects to its servers.
    pub enum ConnectsWord {
        /// When it needs one. A trial in which it connects to no server is graded too.
        "onUse" => OnUse,
    }
}

record! {
    /// Who an agent is.
    pub struct AgentMetadata {
        /// The agent's name.
        "name" => name: RequiredKey<WithSpan<LooseText>>,
        /// Its version.
        "version" => version: Option<LooseText>,
        /// What it is.
        "description" => description: Option<LooseText>,
        /// Kept as they are.
        "annotations" => annotations: Option<Node>,
    }
}

impl Decode for BuiltinAgent {
    fn decode(node: &Node, cx: &Context<'_>) -> Option<Self> {
        decode_word(node, cx, &Self::ALL.map(|agent| (agent.name(), agent)))
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({"enum": Self::ALL.map(Self::name)})
    }
}

record! {
    /// One of the agents that Proctor knows.
    pub struct BuiltinFile {
        /// Which one.
        "type" => kind: BuiltinAgent,
        /// The model, as `provider:model-id`.
        "model" => model: Option<WithSpan<String>>,
        /// Where the model is.
        "baseUrl" => base_url: Option<WithSpan<String>>,
        /// The environment variable that holds the key.
        "apiKey" => api_key: Option<String>,
    }
}

record! {
    /// A program that speaks the Agent Client Protocol on its stdin and stdout.
    pub struct AcpFile {
        /// The program.
        "cmd" => cmd: String,
        /// Its arguments.
        "args" => args: Vec<LooseText>,
    }
}

record! {
    /// Templates of a program's command line.
    pub struct CommandsFile {
        /// The command. Fields: `{{ .Prompt }}`, `{{ .McpServerFileArgs }}`, `{{ .AllowedToolArgs }}`,
        /// `{{ .DangerouslySkipPermissions }}`.
        "runPrompt" => run_prompt: WithSpan<String>,
        /// For each server. Fields: `{{ .File }}`, `{{ .URL }}`.
        "argTemplateMcpServer" => mcp_server: Option<WithSpan<LooseText>>,
        /// For each allowed tool. Fields: `{{ .ServerName }}`, `{{ .ToolName }}`.
        "argTemplateAllowedTools" => allowed_tools: Option<WithSpan<LooseText>>,
        /// What stands between allowed tools, one space if not given.
        "allowedToolsJoinSeparator" => separator: Option<LooseText>,
        /// What `{{ .DangerouslySkipPermissions }}` stands for in `runPrompt`, `false` if not given.
        "dangerouslySkipPermissions" => skip_permissions: Option<bool>,
        /// Whether it runs with an empty home folder of its own.
        "useVirtualHome" => virtual_home: Option<bool>,
        /// A command that prints the agent's version.
        "getVersion" => version: Option<String>,
    }
}

record! {
    /// Where the agent looks for skills.
    pub struct SkillMountFile {
        /// The folder, inside the agent's working folder.
        "mountPath" => mount_path: Option<String>,
        /// The agent's tool that loads a skill.
        "toolName" => tool_name: Option<String>,
    }
}
