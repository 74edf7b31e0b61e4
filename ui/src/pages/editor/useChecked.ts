// What is known of the text in the editor: the tree, all problems with their places, the graph.
import { useQuery } from '@tanstack/react-query';
import { useEffect, useMemo, useRef, useState } from 'react';
import { getDocumentSchema, validateDocument, type WorkflowGraph } from '../../api/calls';
import { Problem } from '../../api/problem';
import { checkSchema } from '../../editor/checkSchema';
import {
  type Format,
  jsonText,
  rangeOf,
  stepsOf,
  type TextProblem,
  type TreeValue,
} from '../../editor/documentTree';
import { parseText } from '../../editor/formats';
import type { Schema } from '../../editor/schema';
import { sketch } from '../../editor/sketch';

/** The server checks the text when nothing was typed for this long. */
const PAUSE_MS = 350;

export type Checked = {
  root: TreeValue | null;
  /** The last text that could be read, as a tree. */
  lastRoot: TreeValue | null;
  /** The document as JSON, or null if the text can't be read. */
  json: string | null;
  problems: TextProblem[];
  /** The server has found no mistake in exactly this text. */
  isValid: boolean;
  isChecking: boolean;
  /** The server couldn't check the text. */
  error: Error | null;
  name: string | null;
  graph: WorkflowGraph | null;
};

export function useChecked(text: string, format: Format, schema: Schema | null): Checked {
  const parsed = useMemo(() => parseText(text, format), [text, format]);
  const { root } = parsed;
  const json = useMemo(() => (root ? jsonText(root) : null), [root]);
  const settled = useSettled(json);
  const validation = useQuery({
    queryKey: ['validate', settled],
    queryFn: () => validateDocument(settled ?? ''),
    enabled: settled !== null,
    retry: (count, error) => count < 3 && error instanceof Problem && error.passing,
    staleTime: 5000,
    gcTime: 30_000,
  });
  const isCurrent = settled === json && json !== null && validation.data !== undefined;
  const answer = isCurrent ? validation.data : undefined;
  const refusal = settled === json && validation.error instanceof Problem ? validation.error : null;

  const problems = useMemo((): TextProblem[] => {
    if (!root) return parsed.problems;
    const marks: TextProblem[] = [...parsed.problems];
    const mark = (severity: TextProblem['severity'], path: string, message: string) =>
      marks.push({ ...rangeOf(root, stepsOf(path), text), severity, message });
    for (const { path, message } of answer?.problems ?? refusal?.problems ?? []) {
      mark('error', path, message);
    }
    for (const { path, message } of answer?.warnings ?? []) mark('warning', path, message);
    if (schema && !answer?.valid) {
      for (const { steps, message } of checkSchema(root, schema)) {
        const range = rangeOf(root, steps, text);
        const isTold = marks.some(({ from, to }) => from < range.to && range.from < to);
        if (!isTold) marks.push({ ...range, severity: 'error', message });
      }
    }
    return marks.sort((a, b) => a.from - b.from);
  }, [root, parsed.problems, text, answer, refusal, schema]);

  const lastRoot = useLast(root);
  const sketched = useMemo(() => (lastRoot ? sketch(lastRoot) : null), [lastRoot]);
  const graph = useSameShape(answer?.graph ?? sketched);
  return {
    root,
    lastRoot,
    json,
    problems,
    isValid: answer?.valid ?? false,
    isChecking: json !== null && !answer && !validation.error,
    error: settled === json && !refusal?.problems.length ? validation.error : null,
    name: answer?.name ?? null,
    graph,
  };
}

/** The JSON Schema of the document; null until it is loaded, or if the server has none. */
export function schemaQuery() {
  return {
    queryKey: ['schema'],
    queryFn: async () => (await getDocumentSchema()) as Schema,
    staleTime: Number.POSITIVE_INFINITY,
    retry: false,
  };
}

function useSettled(json: string | null): string | null {
  const [settled, setSettled] = useState(json);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(json), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [json]);
  return settled;
}

function useLast<T>(value: T | null): T | null {
  const last = useRef(value);
  if (value !== null) last.current = value;
  return last.current;
}

/** The same object as before while the graph is the same: it isn't laid out again. */
function useSameShape(graph: WorkflowGraph | null): WorkflowGraph | null {
  const last = useRef<{ graph: WorkflowGraph; shape: string } | null>(null);
  return useMemo(() => {
    if (!graph) return null;
    const shape = shapeOf(graph);
    if (last.current?.shape !== shape) last.current = { graph, shape };
    return last.current.graph;
  }, [graph]);
}

function shapeOf({ nodes, edges }: WorkflowGraph): string {
  return JSON.stringify([
    nodes.map(({ id, handler, level, condition }) => [id, handler, level, condition]),
    edges.map(({ from, to }) => [from, to]).sort(),
  ]);
}
