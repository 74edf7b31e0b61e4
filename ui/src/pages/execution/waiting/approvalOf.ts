import type { Approval, Execution, NodeDetail } from '../../../api/calls';
import { textOf } from './signalConfig';

/**
 * An approval by its node alone: of one that the inbox doesn't list yet, or that is behind many
 * others. Whether the caller may decide it, the server says when it is decided.
 */
export function approvalOf(
  { execution_id, workflow, version }: Pick<Execution, 'execution_id' | 'workflow' | 'version'>,
  detail: NodeDetail,
  mayDecide: boolean,
): Approval {
  const config = detail.resolved_config ?? detail.config;
  return {
    execution_id,
    node_id: detail.node_id,
    workflow,
    version,
    title: textOf(config.title) || detail.node_id,
    text: config.text ?? null,
    form: config.form ?? null,
    comment: textOf(config.comment) || 'never',
    needed: typeof config.needed === 'number' ? config.needed : 1,
    since: detail.started_at ?? '',
    expires_at: null,
    may_decide: mayDecide,
  };
}
